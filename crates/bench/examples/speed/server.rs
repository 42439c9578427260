//! The least a server can do for a request: level-triggered epoll, one read, a search for the
//! number in the path, one write of a response that was made beforehand. What it sends is what the
//! site has, so that it passes every check.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use weir_bench::mark::{Answered, Id};
use weir_semantics::write_http_date;
use weir_wire::{Version, write};
use weir_workload::{Site, Target};

use crate::hits::{SEED, TARGETS, scenario};

/// The key of the listener among the events; connections count from 1.
const LISTENER: u64 = 0;

const SCRATCH_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;

/// Serves until it is killed; the first line it prints is its address.
pub(crate) fn serve() -> crate::Outcome {
    let answers = answers(&scenario(1)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let key = epoll::EventData::new_u64(LISTENER);
    epoll::add(&epoll, &listener, key, epoll::EventFlags::IN)?;
    let mut connections: BTreeMap<u64, TcpStream> = BTreeMap::new();
    let mut next_key = LISTENER + 1;
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let key = event.data.u64();
            if key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    let data = epoll::EventData::new_u64(next_key);
                    epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                    connections.insert(next_key, stream);
                    next_key += 1;
                }
            } else if let Some(stream) = connections.get_mut(&key)
                && answer(stream, &mut scratch, &answers).is_err()
            {
                connections.remove(&key);
            }
        }
    }
}

/// One request, and its response: neither client sends more, and a kernel's buffer holds 1 KiB.
fn answer(stream: &mut TcpStream, scratch: &mut [u8], answers: &[Vec<u8>]) -> io::Result<()> {
    let length = stream.read(scratch)?;
    let digits = scratch[..length]
        .iter()
        .skip_while(|byte| !byte.is_ascii_digit())
        .take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    let answer = answers.get(number).ok_or(io::ErrorKind::InvalidInput)?;
    if length == 0 || stream.write(answer)? < answer.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// By number, as a cache would send them from its store.
fn answers(scenario: &weir_workload::Scenario) -> Vec<Vec<u8>> {
    let site = Site::new(scenario, SEED);
    let numbers = 0..u64::from(TARGETS);
    numbers
        .map(|number| answer_for(&site, Target { server: 0, number }))
        .collect()
}

fn answer_for(site: &Site, target: Target) -> Vec<u8> {
    let about = site.describe(target, weir_semantics::Timestamp(0));
    let mut out = Vec::new();
    let mut date = [0; 29];
    write_http_date(about.modified.unwrap_or_default(), &mut date);
    write::status_line(&mut out, Version::Http11, 200, "OK");
    write::field(&mut out, "Content-Type", about.content_type.as_bytes());
    write::number_field(&mut out, "Content-Length", about.length);
    write::field(&mut out, "Last-Modified", &date);
    write::field(&mut out, "Date", &date);
    write::field(&mut out, "Cache-Control", b"public, max-age=31536000");
    write::field(&mut out, "Age", b"1");
    write::field(&mut out, "Cache-Status", b"floor; hit");
    let (mut tag, mut mark) = (Vec::new(), Vec::new());
    site.write_entity_tag(target, about.version, &mut tag);
    let id = Id {
        phase: 0,
        share: 9999,
        number: target.number,
    };
    let answered = Answered {
        id: Some(id),
        version: about.version,
        is_validated: false,
        begun_us: None,
    };
    answered.write(&mut mark);
    write::field(&mut out, "ETag", &tag);
    write::field(&mut out, weir_bench::mark::FIELD, &mark);
    write::end_of_head(&mut out);
    let head = out.len();
    let length = usize::try_from(about.length).unwrap_or(0);
    out.resize(head + length, 0);
    site.content(target, about.version)
        .fill(0, &mut out[head..]);
    out
}
