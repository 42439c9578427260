//! Calls about stored responses, as a module makes them, and what came of them in words.

use super::host_modules::text;
use super::pattern;
use std::rc::Rc;
use std::time::Duration;
use weir_extend::{
    Fields, Host, InjectedHead, ListenerMode, Pending, STORED_PIECE_BYTES_MAX, StoredError,
    StoredInfo, StoredTarget,
};

/// Makes the call `verb` with the words `rest`; what came of it.
pub(super) fn ask(host: &Rc<dyn Host>, verb: &str, rest: &str, fields: &Fields) -> Pending<String> {
    let stored = host.stored();
    let (first, last) = rest.split_once(' ').unwrap_or(("", rest));
    let target = target(last, fields);
    let host = Rc::clone(host);
    match verb {
        "query" => described(stored.query(target), |info| describe(&info)),
        "store" => described(stored.fetch(target), |info| describe(&info)),
        "validate" => described(stored.validate(target), |it| format!("{it:?}")),
        "expire" => {
            let seconds = Duration::from_secs(first.parse().expect("seconds"));
            described(stored.set_expiry(target, seconds), |()| "expires".into())
        }
        "delete" => described(stored.delete(target), |count| format!("deleted {count}")),
        "read" => {
            let most = number(fields, "x-max").unwrap_or(1 << 20);
            described(stored.read(target, most), |read| {
                let content = read.content;
                assert!(content == pattern(content.len()), "other bytes");
                format!("{} {} bytes", read.info.status, content.len())
            })
        }
        "read-parts" => Box::pin(async move {
            match read_parts(&host, target).await {
                Ok(parts) => format!("{parts} parts"),
                Err(error) => format!("{error:?}"),
            }
        }),
        "inject" => {
            let content = pattern(number(fields, "x-content-bytes").unwrap_or(0));
            let injected = stored.inject(injected(target, fields), content);
            described(injected, |info| describe(&info))
        }
        _ => {
            let head = injected(target, fields);
            let content = pattern(number(fields, "x-content-bytes").unwrap_or(0));
            let announced = number(fields, "x-announced").map(|bytes| bytes as u64);
            Box::pin(async move {
                match inject_pieces(&host, head, content, announced).await {
                    Ok(info) => describe(&info),
                    Err(error) => format!("{error:?}"),
                }
            })
        }
    }
}

fn target(url: &str, fields: &Fields) -> StoredTarget {
    let mode = match fields.get("x-mode") {
        Some(b"gateway") => ListenerMode::Gateway,
        _ => ListenerMode::Forward,
    };
    let own = prefixed(fields, "x-of-");
    StoredTarget {
        fields: own,
        ..StoredTarget::new(mode, url)
    }
}

/// The fields whose names begin so, without that.
fn prefixed(fields: &Fields, prefix: &str) -> Fields {
    let lines = fields.iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        Some((name.strip_prefix(prefix)?.to_owned(), value.to_vec()))
    });
    let lines: Vec<_> = lines.collect();
    Fields::received(lines.iter().map(|(name, value)| (name.as_str(), &**value)))
}

fn number(fields: &Fields, name: &str) -> Option<usize> {
    fields
        .get(name)
        .map(|value| text(value).parse().expect("a number"))
}

fn injected(target: StoredTarget, fields: &Fields) -> InjectedHead {
    InjectedHead {
        target,
        status: number(fields, "x-status")
            .map_or(200, |status| u16::try_from(status).expect("a status")),
        fields: prefixed(fields, "x-in-"),
    }
}

fn described<T: 'static>(
    call: Pending<Result<T, StoredError>>,
    describe: impl FnOnce(T) -> String + 'static,
) -> Pending<String> {
    Box::pin(async move {
        match call.await {
            Ok(result) => describe(result),
            Err(StoredError::Refused(why, _)) => format!("refused: {why}"),
            Err(error) => format!("{error:?}"),
        }
    })
}

fn describe(info: &StoredInfo) -> String {
    let length = info.complete_bytes;
    let length = length.map_or("?".into(), |length| length.to_string());
    let (age, fresh) = (info.age.as_secs(), info.fresh_for.as_secs());
    format!(
        "{} {length} bytes, age {age}, fresh for {fresh}",
        info.status
    )
}

async fn read_parts(host: &Rc<dyn Host>, target: StoredTarget) -> Result<usize, StoredError> {
    let mut reader = host.stored().start_read(target).await?;
    let (mut content, mut parts) = (Vec::new(), 0);
    loop {
        let part = reader.part().await?;
        assert!(part.len() <= STORED_PIECE_BYTES_MAX);
        if part.is_empty() {
            break;
        }
        content.extend(part);
        parts += 1;
    }
    assert_eq!(Some(content.len() as u64), reader.info().complete_bytes);
    assert!(content == pattern(content.len()), "other bytes");
    Ok(parts)
}

async fn inject_pieces(
    host: &Rc<dyn Host>,
    head: InjectedHead,
    content: Vec<u8>,
    announced: Option<u64>,
) -> Result<StoredInfo, StoredError> {
    let mut injection = host.stored().start_injection(head, announced).await?;
    for piece in content.chunks(10_000) {
        injection.piece(piece.to_vec()).await?;
    }
    injection.done().await
}
