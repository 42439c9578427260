//! Rows of any kind, for property tests.

use crate::{AbortedBy, Row, TraceMethod, TraceScheme, TraceVersion};
use weir_workload::Chance;

/// Which values are there, and which they are: extremes as often as anything else.
struct Any {
    chance: Chance,
    /// The share of values that are there.
    share: f64,
}

impl Any {
    fn is_there(&mut self) -> bool {
        let share = self.share;
        self.chance.is(share)
    }

    fn word(&mut self) -> u64 {
        match self.chance.below(4) {
            0 => 0,
            1 => u64::MAX,
            2 => self.chance.below(1000),
            _ => self.chance.word(),
        }
    }

    fn number(&mut self) -> Option<u64> {
        let word = self.word();
        self.is_there().then_some(word)
    }

    fn signed(&mut self) -> Option<i64> {
        self.number().map(u64::cast_signed)
    }

    fn half(&mut self) -> Option<u32> {
        let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
        self.number().map(low)
    }

    fn quarter(&mut self) -> Option<u16> {
        let low = |word: u64| u16::try_from(word & u64::from(u16::MAX)).unwrap_or(0);
        self.number().map(low)
    }

    fn bool(&mut self) -> Option<bool> {
        self.number().map(|word| word % 2 == 1)
    }

    fn text(&mut self) -> Option<String> {
        let texts = [
            "",
            "text/html",
            "\u{0}\u{fffd}\"'",
            "http://a.example/ö?x=1",
        ];
        let index = self.chance.below(5);
        let long = self.chance.below(3000);
        let text = usize::try_from(index)
            .ok()
            .and_then(|index| texts.get(index));
        let text = text.map_or_else(
            || "x".repeat(usize::try_from(long).unwrap_or(0)),
            |text| (*text).to_owned(),
        );
        self.is_there().then_some(text)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let index = self.chance.below(all.len() as u64);
        let one = usize::try_from(index)
            .ok()
            .and_then(|index| all.get(index))
            .copied();
        self.is_there().then_some(one).flatten()
    }
}

/// `count` rows in which each value is there with the probability `share`.
pub(super) fn rows(seed: u64, count: usize, share: f64) -> Vec<Row> {
    let mut any = Any {
        chance: Chance::new(seed, 0),
        share,
    };
    (0..count).map(|_| row(&mut any)).collect()
}

fn row(any: &mut Any) -> Row {
    Row {
        arrival_us: any.word().cast_signed(),
        setup_us: any.number(),
        request_us: any.number(),
        response_us: any.number(),
        first_byte_us: any.number(),
        last_byte_us: any.number(),
        next_hop_setup_us: any.number(),
        next_hop_response_us: any.number(),
        client: any.number(),
        connection: any.number(),
        connection_sequence: any.half(),
        next_hop_connection: any.number(),
        server: any.number(),
        target: any.word(),
        target_text: any.text(),
        method: any.one_of(TraceMethod::ALL),
        scheme: any.one_of(TraceScheme::ALL),
        version: any.one_of(TraceVersion::ALL),
        has_cookie: any.bool(),
        has_authorization: any.bool(),
        has_query: any.bool(),
        has_cgi_bin: any.bool(),
        request_directives: any.half(),
        request_max_age_s: any.half(),
        range_first: any.number(),
        range_last: any.number(),
        variant: any.number(),
        ..answer(any)
    }
}

fn answer(any: &mut Any) -> Row {
    Row {
        status: any.quarter(),
        has_set_cookie: any.bool(),
        response_directives: any.half(),
        max_age_s: any.half(),
        s_maxage_s: any.half(),
        stale_while_revalidate_s: any.half(),
        stale_if_error_s: any.half(),
        date_s: any.signed(),
        expires_s: any.signed(),
        age_s: any.half(),
        last_modified_s: any.signed(),
        etag: any.number(),
        etag_is_weak: any.bool(),
        vary: any.number(),
        content_type: any.text(),
        declared_bytes: any.number(),
        complete_bytes: any.number(),
        received_bytes: any.number(),
        next_hop_bytes: any.number(),
        request_head_bytes: any.half(),
        response_head_bytes: any.half(),
        request_content_bytes: any.number(),
        aborted_by: any.one_of(AbortedBy::ALL),
        is_persistent_client: any.bool(),
        is_persistent_server: any.bool(),
        verdict: any.text(),
        node_choice: any.text(),
        next_hop_choice: any.text(),
        next_access: any.signed(),
        ..Row::default()
    }
}
