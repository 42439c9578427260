//! Members in a file: `[[member]]` tables, read again when the file changes.
//!
//! The file is looked at each [`POLL`], and read when it has not changed for one: a file that is
//! being written in place is not taken for a shorter list. One that is replaced by a rename is
//! whole at any time.

use crate::member::{Member, MemberPart, WEIGHT_DEFAULT, check, parse_url};
use crate::output::Output;
use serde::Deserialize;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use weir_policy::route::{NodeState, Weight};

/// How often the file is looked at: a change counts after two, half a second.
const POLL: Duration = Duration::from_millis(250);

/// The longest file that is read, bytes: 1024 members take about 100 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a file is no list of members.
#[derive(Debug)]
pub struct FileError {
    path: PathBuf,
    /// Line and column, from 1.
    place: Option<(usize, usize)>,
    cause: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.place {
            None => write!(f, "`{path}`: {}", self.cause),
            Some((line, column)) => {
                write!(f, "`{path}` line {line}, column {column}: {}", self.cause)
            }
        }
    }
}

impl std::error::Error for FileError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    member: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: Spanned<String>,
    url: Spanned<String>,
    weight: Option<Spanned<u16>>,
    #[serde(default)]
    front_end: bool,
}

/// Reads the members in a file.
///
/// # Errors
///
/// It cannot be read, is longer than 1 MiB, or is no list of members: with line and column.
pub fn read(path: &Path) -> Result<Vec<Member>, FileError> {
    let failed = |cause: String| FileError {
        path: path.to_owned(),
        place: None,
        cause,
    };
    let text = read_text(path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(|(span, cause)| FileError {
        place: span.map(|span| place(&text, &span)),
        ..failed(cause)
    })
}

fn read_text(path: &Path) -> io::Result<String> {
    // a pipe would be waited for
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let problem = format!("it is longer than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(problem));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// The members, or what is wrong and where.
fn parse(text: &str) -> Result<Vec<Member>, (Option<Range<usize>>, String)> {
    let document: Document =
        toml::from_str(text).map_err(|error| (error.span(), error.message().to_owned()))?;
    let members = document.member.iter().map(member);
    let members = members.collect::<Result<Vec<Member>, _>>()?;
    check(&members).map_err(|bad| {
        let table = &document.member[bad.index];
        let span = match bad.part {
            MemberPart::Url => table.url.span(),
            MemberPart::Name | MemberPart::Count => table.name.span(),
        };
        (Some(span), bad.problem)
    })?;
    Ok(members)
}

fn member(table: &Table) -> Result<Member, (Option<Range<usize>>, String)> {
    let hop = parse_url(table.url.get_ref())
        .map_err(|error| (Some(table.url.span()), error.to_string()))?;
    let weight = table.weight.as_ref();
    let number = weight.map_or(WEIGHT_DEFAULT, |weight| *weight.get_ref());
    let Some(weight) = Weight::new(number) else {
        let problem =
            "the weight 0 is no share: take a node that is to get nothing out of the list";
        return Err((table.weight.as_ref().map(Spanned::span), problem.into()));
    };
    Ok(Member {
        name: table.name.get_ref().clone(),
        hop,
        weight,
        state: match table.front_end {
            true => NodeState::FrontEnd,
            false => NodeState::In,
        },
    })
}

/// Line and column of the beginning of `span`, from 1.
fn place(text: &str, span: &Range<usize>) -> (usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[begin..].chars().count() + 1)
}

/// By what a change of a file is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: (file.dev(), file.ino()),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

/// Follows the file for ever.
pub(crate) async fn follow(path: &Path, output: &mut Output) {
    let mut seen = Stamp::of(path);
    let mut taken = None;
    loop {
        let stamp = Stamp::of(path);
        if stamp == seen {
            match (stamp, taken) {
                (Some(stamp), Some((known, is_good))) if stamp == known => {
                    if is_good {
                        output.reporter.confirm();
                    }
                }
                _ => {
                    let members = read(path);
                    taken = stamp.map(|stamp| (stamp, members.is_ok()));
                    match members {
                        Ok(members) => output.publish(members).await,
                        Err(error) => output.reporter.fail(&error),
                    }
                }
            }
        }
        seen = stamp;
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, host, port and weight.
    type Row = (&'static str, &'static str, u16, u16);

    fn check_text(text: &str, expected: Result<&[Row], (&str, &str)>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("members.toml");
        std::fs::write(&path, text).unwrap();
        match (read(&path), expected) {
            (Ok(members), Ok(expected)) => {
                let found = members.iter().map(|it| {
                    let (name, host) = (it.name.as_str(), &*it.hop.host);
                    (name, host, it.hop.port, it.weight.get())
                });
                assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
            }
            (Err(error), Err((place, problem))) => {
                let error = error.to_string();
                let is_named = error.contains(&format!("members.toml` {place}:"));
                assert!(is_named && error.contains(problem), "{text}: {error}");
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn members_of_a_file_have_name_url_and_weight() {
        check_text("", Ok(&[]));
        check_text(
            "[[member]]\nname = \"a\"\nurl = \"http://10.0.0.1:1\"\n\n[[member]]\nname = \"b\"\nurl = \"http://B.example\"\nweight = 7\n",
            Ok(&[("a", "10.0.0.1", 1, 100), ("b", "b.example", 80, 7)]),
        );
    }

    #[test]
    fn bad_member_is_refused_with_line_and_column() {
        let table = |rest: &str| format!("\n[[member]]\nname = \"a\"\n{rest}");
        check_text(
            &table("url = \"https://a\""),
            Err(("line 4, column 7", "scheme http")),
        );
        check_text(
            &table("url = \"http://a\"\nweight = 0"),
            Err(("line 5, column 10", "the weight 0")),
        );
        check_text(
            &table("url = \"http://a\"\nweight = 65536"),
            Err(("line 5, column 10", "65536")),
        );
        check_text(
            &table("url = \"http://a\"\n[[member]]\nname = \"a\"\nurl = \"http://b\""),
            Err(("line 6, column 8", "of an earlier member")),
        );
        check_text(
            &table("url = \"http://a\"\n[[member]]\nname = \"b\"\nurl = \"http://a:80\""),
            Err(("line 7, column 7", "of member `a`")),
        );
        check_text(&table("host = \"a\""), Err(("line 4, column 1", "host")));
        check_text(&table("url = \"http"), Err(("line 4, column 12", "")));
        check_text("member = 3", Err(("line 1, column 10", "")));
    }

    #[test]
    fn what_is_no_short_text_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |path: &Path| read(path).unwrap_err().to_string();
        assert!(problem(&folder.path().join("none")).contains("No such file"));
        assert!(problem(folder.path()).contains("it is not a file"));
        let path = folder.path().join("members.toml");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(problem(&path).contains("UTF-8"));
        std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(problem(&path).contains("longer than 1048576 bytes"));
        std::fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
        assert!(read(&path).unwrap().is_empty());
    }
}
