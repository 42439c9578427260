//! The origin: a real nginx with static files, on the core of the load generator.

use super::cells::CELLS;
use crate::client::get as client;
use crate::process::affinity::Cores;
use crate::process::guarded;
use crate::proxy::server::{self, Server};
use crate::proxy::template::Words;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// Nothing arrives for this long: nothing is under way.
const QUIET: Duration = Duration::from_millis(50);

const QUIET_MAX: Duration = Duration::from_secs(3);

/// A running origin.
#[derive(Debug)]
pub(crate) struct Origin {
    server: Server,
}

impl Origin {
    pub(crate) fn start(
        directory: &Path,
        words: &Words,
        cores: Cores,
        life: Duration,
    ) -> Result<Self, Failure> {
        for cell in &CELLS {
            let file = directory.join(format!("files{}", cell.path));
            let parent = file.parent().unwrap_or(directory);
            std::fs::create_dir_all(parent).during("make the origin's directories")?;
            std::fs::write(&file, content(cell.body_bytes)).during("write the origin's files")?;
        }
        let mut words = words.clone();
        let port = server::free_port()?;
        words.set("PORT", port);
        words.set("DIR", directory.display());
        let config = directory.join("origin.conf");
        let template = server::file_of_peers("", "origin-nginx.conf");
        server::write_template(&template, &config, &words)?;
        let config = config.display().to_string();
        let log = directory.join("origin-error.log").display().to_string();
        let arguments = [
            "nginx".to_owned(),
            "-e".to_owned(),
            log,
            "-c".to_owned(),
            config,
        ];
        let mut command = guarded::command(&arguments, life);
        let mut server = Server::spawn(
            "origin",
            &mut command,
            directory,
            (Ipv4Addr::LOCALHOST, port).into(),
            Some(cores.load),
        )?;
        server.wait_until_it_answers("/status")?;
        Ok(Self { server })
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// How many requests the origin has seen, as soon as no more arrive: requests that were under
    /// way when a run ended must not be counted in the next one.
    pub(crate) fn requests_when_quiet(&self) -> Result<u64, Failure> {
        let deadline = Instant::now() + QUIET_MAX;
        let mut last = self.requests()?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.requests()?;
            if count_between(last, now) == 0 || Instant::now() > deadline {
                return Ok(now);
            }
            last = now;
        }
    }

    /// How many requests the origin has seen. This question is one of them: see [`count_between`].
    pub(crate) fn requests(&self) -> Result<u64, Failure> {
        let answer = client::get_once(self.server.address(), "/status")
            .during("ask the origin for its count")?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let count = parse_status(&text).ok_or_else(|| format!("it answered `{text}`"));
        count.during("read the origin's count")
    }
}

/// The third of three numbers below the words `accepts handled requests`.
fn parse_status(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("requests")?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

/// Requests between two readings of [`Origin::requests`]: the second reading counted itself.
pub(crate) fn count_between(before: u64, after: u64) -> u64 {
    after.saturating_sub(before).saturating_sub(1)
}

/// Bytes that do not repeat, so that a part in the wrong place is noticed.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    // xorshift, seeded by the length: the same file in every run
    let mut state = (bytes as u64) | 1 << 40;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(&mut next).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_count_is_parsed_from_the_nginx_status_page() {
        let page = "Active connections: 1 \nserver accepts handled requests\n 12 13 14 \nReading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(parse_status(page), Some(14));
        assert_eq!(parse_status("404"), None);
    }

    #[test]
    fn status_query_itself_is_not_counted() {
        assert_eq!(count_between(14, 15), 0);
        assert_eq!(count_between(14, 17), 2);
    }

    #[test]
    fn file_content_is_reproducible_and_differs_by_length() {
        assert_eq!(content(1024), content(1024));
        assert_ne!(content(1024), content(1025)[..1024]);
    }
}
