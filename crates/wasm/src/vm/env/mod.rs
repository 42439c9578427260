//! The calls of the ABI (module `env`), by topic.

mod buffers;
mod data;
mod general;
mod maps;
mod streams;

use super::guest::{answer, answer_always};
use super::memory::Span;
use super::state::State;
use crate::calls::ENV;
use crate::host::Host;
use wasmtime::{Caller, Linker};

/// Defines calls: a name, the arguments with their types, and what answers.
macro_rules! calls {
    ($linker:ident, $answer:ident, $(
        $name:literal |$guest:ident $(, $argument:ident: $kind:ty)*| $body:expr;
    )*) => {
        $($linker.func_wrap(
            ENV,
            $name,
            |mut caller: Caller<'_, State<H>> $(, $argument: $kind)*| {
                $answer(&mut caller, |$guest| $body)
            },
        )?;)*
    };
}

/// Defines every call that is supported.
pub(crate) fn link<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    link_general(linker)?;
    link_messages(linker)?;
    link_streams(linker)?;
    link_data(linker)
}

fn link_general<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    calls! {
        linker, answer_always,
        "proxy_log" |guest, level: u32, data: u32, size: u32|
            general::log(guest, level, Span::new(data, size));
        "proxy_get_log_level" |guest, level: u32| general::log_level(guest, level);
        "proxy_get_current_time_nanoseconds" |guest, time: u32| general::time(guest, time);
    }
    calls! {
        linker, answer,
        "proxy_set_tick_period_milliseconds" |guest, period: u32|
            general::set_tick_period(guest, period);
        "proxy_set_effective_context" |guest, id: u32| general::set_context(guest, id);
        "proxy_done" |guest| general::done(guest);
    }
    Ok(())
}

fn link_messages<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    calls! {
        linker, answer,
        "proxy_get_buffer_bytes" |guest, kind: u32, start: u32, max: u32, data: u32, size: u32|
            buffers::get(guest, kind, (start, max), data, size);
        "proxy_get_buffer_status" |guest, kind: u32, size: u32, flags: u32|
            buffers::status(guest, kind, size, flags);
        "proxy_set_buffer_bytes" |guest, kind: u32, start: u32, len: u32, data: u32, size: u32|
            buffers::set(guest, kind, (start, len), Span::new(data, size));
        "proxy_get_header_map_size" |guest, map: u32, size: u32| maps::size(guest, map, size);
        "proxy_get_header_map_pairs" |guest, map: u32, data: u32, size: u32|
            maps::pairs(guest, map, data, size);
        "proxy_set_header_map_pairs" |guest, map: u32, data: u32, size: u32|
            maps::set_pairs(guest, map, Span::new(data, size));
        "proxy_get_header_map_value"
            |guest, map: u32, name: u32, name_size: u32, data: u32, size: u32|
            maps::value(guest, map, Span::new(name, name_size), data, size);
        "proxy_add_header_map_value"
            |guest, map: u32, name: u32, name_size: u32, value: u32, value_size: u32|
            maps::add(guest, map, Span::new(name, name_size), Span::new(value, value_size));
        "proxy_replace_header_map_value"
            |guest, map: u32, name: u32, name_size: u32, value: u32, value_size: u32|
            maps::replace(guest, map, Span::new(name, name_size), Span::new(value, value_size));
        "proxy_remove_header_map_value" |guest, map: u32, name: u32, name_size: u32|
            maps::remove(guest, map, Span::new(name, name_size));
    }
    Ok(())
}

fn link_streams<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    calls! {
        linker, answer,
        "proxy_continue_stream" |guest, stream: u32| streams::resume(guest, stream);
        "proxy_close_stream" |guest, stream: u32| streams::close(guest, stream);
        "proxy_send_local_response"
            |guest, status: u32, details: u32, details_size: u32, body: u32, body_size: u32,
             fields: u32, fields_size: u32, grpc_status: i32|
            streams::respond(guest, streams::ResponseSpans {
                status,
                details: Span::new(details, details_size),
                body: Span::new(body, body_size),
                fields: Span::new(fields, fields_size),
                grpc_status,
            });
        "proxy_http_call"
            |guest, upstream: u32, upstream_size: u32, fields: u32, fields_size: u32, body: u32,
             body_size: u32, trailers: u32, trailers_size: u32, timeout_ms: u32, id: u32|
            streams::http_call(guest, streams::CallSpans {
                upstream: Span::new(upstream, upstream_size),
                fields: Span::new(fields, fields_size),
                body: Span::new(body, body_size),
                trailers: Span::new(trailers, trailers_size),
                timeout_ms,
                id,
            });
        "proxy_get_status" |guest, code: u32, data: u32, size: u32|
            streams::call_status(guest, code, data, size);
    }
    Ok(())
}

fn link_data<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    calls! {
        linker, answer,
        "proxy_get_property" |guest, path: u32, path_size: u32, data: u32, size: u32|
            data::property(guest, Span::new(path, path_size), data, size);
        "proxy_set_property" |guest, path: u32, path_size: u32, value: u32, value_size: u32|
            data::set_property(guest, Span::new(path, path_size), Span::new(value, value_size));
        "proxy_call_foreign_function"
            |guest, name: u32, name_size: u32, arguments: u32, arguments_size: u32, data: u32,
             size: u32|
            data::call_function(
                guest,
                Span::new(name, name_size),
                Span::new(arguments, arguments_size),
                data,
                size,
            );
        "proxy_get_shared_data" |guest, key: u32, key_size: u32, data: u32, size: u32, cas: u32|
            data::shared(guest, Span::new(key, key_size), data, size, cas);
        "proxy_set_shared_data"
            |guest, key: u32, key_size: u32, value: u32, value_size: u32, cas: u32|
            data::set_shared(guest, Span::new(key, key_size), Span::new(value, value_size), cas);
        "proxy_define_metric" |guest, kind: u32, name: u32, name_size: u32, id: u32|
            data::define_metric(guest, kind, Span::new(name, name_size), id);
        "proxy_increment_metric" |guest, id: u32, delta: i64|
            Ok(guest.state().settings.metrics.increment(id, delta)?);
        "proxy_record_metric" |guest, id: u32, value: u64|
            Ok(guest.state().settings.metrics.record(id, value)?);
        "proxy_get_metric" |guest, id: u32, value: u32| data::metric(guest, id, value);
    }
    Ok(())
}
