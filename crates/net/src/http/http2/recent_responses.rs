//! Heads of responses that were sent of late, as `h2` takes them.
//!
//! A popular response has the same head for a second, as long as its age is the same: to read the
//! text of that and to make a map of its fields costs several times what a copy of the map does. Of
//! a head nothing matters but its bytes, and all of them are compared: the hash says only where to
//! look. A head takes a place when it came twice, and no other came to that place between; so heads
//! that come once cost a hash each, and no copy.

use super::head::{self, SHARED_BYTES_MAX};
use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{HeaderMap, Response, StatusCode};
use std::cell::RefCell;

/// Heads that a thread remembers, one for each value of a byte. Each has at most
/// [`SHARED_BYTES_MAX`], once as text and once in its map, which takes 2.6 KiB for
/// [`FIELDS_MAX`], and 1.5 KiB more for names that no standard has: 2 MiB in all at most.
const PLACES: usize = 1 << u8::BITS;

/// Fields of a head that is remembered.
const FIELDS_MAX: usize = 24;

/// A head, and what it is.
struct Known {
    text: Box<[u8]>,
    status: StatusCode,
    fields: HeaderMap,
}

#[derive(Default)]
struct Place {
    /// Of the last head that came here.
    last: u64,
    head: Option<Box<Known>>,
}

/// The heads of one thread; empty until the first.
#[derive(Default)]
struct RecentResponses(Vec<Place>);

thread_local! {
    static RECENT: RefCell<RecentResponses> = const { RefCell::new(RecentResponses(Vec::new())) };
}

/// As [`head::response`], of a head that is the first `length` bytes of `text`, as its writer says.
pub(super) fn response(text: &Bytes, length: usize) -> Option<(Response<()>, usize)> {
    match text.get(..length) {
        Some(bytes) if length <= SHARED_BYTES_MAX => {
            RECENT.with_borrow_mut(|recent| recent.response(text, bytes))
        }
        _ => head::response(text),
    }
}

impl RecentResponses {
    /// `text` begins with `bytes`.
    fn response(&mut self, text: &Bytes, bytes: &[u8]) -> Option<(Response<()>, usize)> {
        let hash = hash_of(bytes);
        if self.0.is_empty() {
            self.0.resize_with(PLACES, Place::default);
        }
        let [place, ..] = hash.to_be_bytes();
        let place = &mut self.0[usize::from(place)];
        if let Some(known) = &place.head
            && *known.text == *bytes
        {
            place.last = hash;
            let mut response = Response::new(());
            *response.status_mut() = known.status;
            response.headers_mut().clone_from(&known.fields);
            return Some((response, bytes.len()));
        }
        let came_last = std::mem::replace(&mut place.last, hash) == hash;
        let (response, length) = head::response(text)?;
        let fields = response.headers();
        let is_small = length == bytes.len() && fields.len() <= FIELDS_MAX;
        if came_last && is_small && !fields.contains_key(SET_COOKIE) {
            place.head = Some(Box::new(Known {
                text: bytes.into(),
                status: response.status(),
                fields: fields.clone(),
            }));
        }
        Some((response, length))
    }
}

/// A number made of all bytes, four words at a time.
fn hash_of(bytes: &[u8]) -> u64 {
    // the golden ratio spreads neighbours (Knuth, volume 3, 6.4)
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let (words, _) = bytes.as_chunks();
    let (fours, rest) = words.as_chunks::<4>();
    let mut lanes = [bytes.len() as u64; 4];
    for four in fours {
        for (lane, bytes) in lanes.iter_mut().zip(four) {
            *lane = mix(*lane, word(bytes));
        }
    }
    let last = bytes.last_chunk().map_or(0, word);
    let rest = rest.iter().map(word).chain([last]);
    lanes.into_iter().chain(rest).fold(0, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: &str) -> Bytes {
        Bytes::from(format!("HTTP/1.1 203 Non\r\nETag: \"a\"\r\n{fields}\r\n"))
    }

    /// Takes the head of `text`, behind which there is content; whether it was known.
    fn take(recent: &mut RecentResponses, head: &Bytes) -> (bool, Response<()>) {
        let text = Bytes::from([&head[..], b"content"].concat());
        let is_known = recent.knows(head);
        let (response, length) = recent.response(&text, head).expect("a head");
        assert_eq!(length, head.len());
        (is_known, response)
    }

    impl RecentResponses {
        fn knows(&self, head: &[u8]) -> bool {
            let mut known = self.0.iter().filter_map(|place| place.head.as_ref());
            known.any(|known| *known.text == *head)
        }
    }

    #[test]
    fn head_is_known_once_it_came_twice_and_says_what_it_said() {
        let mut recent = RecentResponses::default();
        let long = "X-Long: ".to_owned() + &"x".repeat(500) + "\r\n";
        for fields in [
            "",
            "Age: 1\r\nConnection: close\r\n",
            "X: 1\r\nx: 2\r\n",
            &long,
        ] {
            let head = text(fields);
            let (expected, _) = head::response(&head).expect("a head");
            for is_known in [false, false, true, true] {
                let (was_known, response) = take(&mut recent, &head);
                assert_eq!(was_known, is_known, "{fields}");
                assert_eq!(response.status(), expected.status());
                assert_eq!(response.headers(), expected.headers());
            }
        }
    }

    #[test]
    fn head_that_differs_in_any_byte_is_not_known() {
        let mut recent = RecentResponses::default();
        let head = text("Age: 1\r\nX-A: 00000000000000000000000000000000000000000\r\n");
        let _ = [(); 3].map(|()| take(&mut recent, &head));
        for at in "HTTP/1.1 203 Non\r\nETag: \"".len()..head.len() {
            let mut other = head.to_vec();
            other[at] ^= 1;
            let other = Bytes::from(other);
            let taken = recent.response(&other, &other);
            let expected = head::response(&other);
            let fields = |it: Option<(Response<()>, usize)>| it.map(|it| it.0.headers().clone());
            assert_eq!(fields(taken), fields(expected), "{at}");
        }
        assert!(take(&mut recent, &head).0);
    }

    #[test]
    fn neither_content_nor_a_large_head_nor_one_with_a_cookie_is_remembered() {
        let mut recent = RecentResponses::default();
        let head = text("");
        let content = Bytes::from([&head[..], &[0; 4096]].concat());
        for _ in 0..3 {
            assert!(recent.response(&content, &head).is_some());
            assert!(content.is_unique());
        }
        let cookie = text("Set-Cookie: a=b\r\n");
        let _ = [(); 4].map(|()| take(&mut recent, &cookie));
        assert!(!recent.knows(&cookie));
        let large = text(&format!("X: {}\r\n", "x".repeat(SHARED_BYTES_MAX)));
        for _ in 0..4 {
            let (response, length) = response(&large, large.len()).expect("a head");
            assert_eq!((response.headers().len(), length), (2, large.len()));
        }
        RECENT.with_borrow(|recent| assert!(recent.0.is_empty()));
        let many = text(&"X: 1\r\n".repeat(FIELDS_MAX));
        let _ = [(); 4].map(|()| take(&mut recent, &many));
        assert!(!recent.knows(&many));
    }

    #[test]
    fn length_that_is_not_that_of_the_head_changes_nothing() {
        let head = text("Age: 1\r\n");
        let all = Bytes::from([&head[..], b"content"].concat());
        for length in [
            0,
            10,
            head.len() - 2,
            head.len() + 3,
            all.len(),
            all.len() + 1,
        ] {
            for _ in 0..4 {
                let taken = response(&all, length)
                    .map(|(response, length)| (response.headers().len(), length));
                assert_eq!(taken, Some((2, head.len())), "{length}");
            }
        }
    }
}
