//! The one table of a trace's columns. It makes [`Row`], [`Column`], [`Batch`], the Parquet schema,
//! writer, reader and the table in `docs/trace.md`.

pub(crate) mod column;
pub(crate) mod directives;
mod facts;
pub(crate) mod words;

use super::error::Wrong;
use super::file::cell::{self, Cell, EncodedColumn, Source};
use crate::row::column::ColumnInfo;
use crate::row::words::{AbortedBy, TraceMethod, TraceScheme, TraceVersion};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::ColumnDescPtr;
use std::mem;

/// `name: type, "unit", "meaning";` in sections. The type says how Parquet holds it ([`Cell`]);
/// `Option` is null where the source does not say.
macro_rules! columns {
    ($($section:literal { $($name:ident: $type:ty, $unit:literal, $meaning:literal;)+ })+) => {
        /// One transaction: a request and what came of it. `None`: the source does not say.
        ///
        /// Microseconds everywhere. What is called a hash is the keyed hash of the anonymiser, or a
        /// plain one where nothing needs hiding; equal values mean equal things, within one trace.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Row {
            $($(#[doc = $meaning] pub $name: $type,)+)+
        }

        #[cfg(test)]
        impl Row {
            /// The row with everything but these columns forgotten.
            pub(super) fn only(&self, columns: super::Columns) -> Self {
                let mut row = Self::default();
                $($(if columns.has(Column::$name) {
                    row.$name.clone_from(&self.$name);
                })+)+
                row
            }
        }

        /// A column, by its name in the file; [`Column::about`] says what it holds.
        #[expect(non_camel_case_types, reason = "they are named as in the file and in `Row`")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Column {
            $($(#[doc = $meaning] $name,)+)+
        }

        impl Column {
            /// All of them, in the order of the file.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)+)+];

            /// What there is to know about it.
            #[must_use]
            pub const fn about(self) -> ColumnInfo {
                match self {
                    $($(Self::$name => ColumnInfo {
                        section: $section,
                        name: stringify!($name),
                        unit: $unit,
                        meaning: $meaning,
                        column_type: <$type as Cell>::TYPE,
                        is_optional: <$type as Cell>::IS_OPTIONAL,
                    },)+)+
                }
            }
        }

        /// Some rows, column by column: `batch.target[3]` is the target of the fourth.
        ///
        /// A column that was not read is empty; each of the others has [`Batch::rows`] values.
        #[derive(Clone, Debug, Default)]
        pub struct Batch {
            pub(super) rows: usize,
            $($(#[doc = $meaning] pub $name: Vec<$type>,)+)+
        }

        impl Batch {
            /// Adds a row.
            pub(super) fn push(&mut self, row: &Row) {
                self.rows += 1;
                $($(self.$name.push(row.$name.clone());)+)+
            }

            /// Moves a row out. A column that is not there says nothing.
            pub(super) fn take(&mut self, index: usize) -> Row {
                Row {
                    $($($name: self.$name.get_mut(index).map(mem::take).unwrap_or_default(),)+)+
                }
            }

            /// Forgets the rows, and keeps the memory for others.
            pub(super) fn clear(&mut self) {
                self.rows = 0;
                $($(self.$name.clear();)+)+
            }

            /// A column as Parquet holds it.
            pub(super) fn encode(
                &self,
                column: Column,
                description: ColumnDescPtr,
                properties: WriterPropertiesPtr,
            ) -> Result<EncodedColumn, ParquetError> {
                match column {
                    $($(Column::$name => cell::encode(&self.$name, description, properties),)+)+
                }
            }

            /// Replaces a column by the next `rows` values of a source.
            pub(super) fn decode(
                &mut self,
                column: Column,
                source: &mut Source,
                rows: usize,
            ) -> Result<(), Wrong> {
                match column {
                    $($(Column::$name => cell::decode(source, &mut self.$name, rows),)+)+
                }
            }
        }
    };
}

columns! {
    "times" {
        arrival_us: i64, "time",
            "When the transaction began: the SYN of a connection's first request, else its request.";
        setup_us: Option<u64>, "us",
            "From SYN to SYN-ACK, for the first request of a connection.";
        request_us: Option<u64>, "us",
            "From arrival to the request's first byte.";
        response_us: Option<u64>, "us",
            "From arrival to the response head's first byte.";
        first_byte_us: Option<u64>, "us",
            "From arrival to the first byte of content.";
        last_byte_us: Option<u64>, "us",
            "From arrival to the last byte of content, or to the end of the transaction where there is none.";
        next_hop_setup_us: Option<u64>, "us",
            "From SYN to SYN-ACK toward the next hop, for the first request of such a connection.";
        next_hop_response_us: Option<u64>, "us",
            "From request to response head at the next hop.";
    }
    "client, connection and server" {
        client: Option<u64>, "hash",
            "The client: hash of its address.";
        connection: Option<u64>, "number",
            "The client's connection: unique in the trace.";
        connection_sequence: Option<u32>, "number",
            "Which request of its connection it is; the first is 1.";
        next_hop_connection: Option<u64>, "number",
            "The connection to the next hop: unique in the trace.";
        server: Option<u64>, "hash",
            "The server: hash of scheme, host and port.";
    }
    "request" {
        target: u64, "hash",
            "Hash of the target URI, whole, fragment removed. With 100 million different ones the odds of one collision are 3 in 10 000.";
        target_text: Option<String>, "",
            "The target URI itself; only in a trace that keeps targets.";
        method: Option<TraceMethod>, "word",
            "The method.";
        scheme: Option<TraceScheme>, "word",
            "The scheme.";
        version: Option<TraceVersion>, "word",
            "The version of HTTP.";
        has_cookie: Option<bool>, "",
            "Whether the request has a Cookie field.";
        has_authorization: Option<bool>, "",
            "Whether the request has an Authorization field.";
        has_query: Option<bool>, "",
            "Whether the target has a `?`.";
        has_cgi_bin: Option<bool>, "",
            "Whether the target's path has `cgi-bin`.";
        request_directives: Option<u32>, "bits",
            "Cache directives of the request: a set of request bits, see below.";
        request_max_age_s: Option<u32>, "s",
            "The request's `max-age`.";
        range_first: Option<u64>, "bytes",
            "First byte of the requested single range.";
        range_last: Option<u64>, "bytes",
            "Last byte of the requested single range; null with a first byte: to the end.";
        variant: Option<u64>, "hash",
            "Hash of the request fields that the response's Vary names, with their values in the request; two rows with the same `vary` and the same hash are for one variant.";
    }
    "response" {
        status: Option<u16>, "",
            "The final status code.";
        has_set_cookie: Option<bool>, "",
            "Whether the response has a Set-Cookie field.";
        response_directives: Option<u32>, "bits",
            "Cache directives of the response: a set of response bits, see below.";
        max_age_s: Option<u32>, "s",
            "`max-age`.";
        s_maxage_s: Option<u32>, "s",
            "`s-maxage`.";
        stale_while_revalidate_s: Option<u32>, "s",
            "`stale-while-revalidate`.";
        stale_if_error_s: Option<u32>, "s",
            "`stale-if-error`.";
        date_s: Option<i64>, "s since 1970",
            "Date.";
        expires_s: Option<i64>, "s since 1970",
            "Expires.";
        age_s: Option<u32>, "s",
            "Age.";
        last_modified_s: Option<i64>, "s since 1970",
            "Last-Modified.";
        etag: Option<u64>, "hash",
            "Hash of the entity tag.";
        etag_is_weak: Option<bool>, "",
            "Whether the entity tag is weak.";
        vary: Option<u64>, "hash",
            "Hash of the sorted names in Vary, the same under every key; 0 without Vary, all bits one with `*`.";
        content_type: Option<String>, "",
            "The media type, lower case, without parameters.";
    }
    "bytes" {
        declared_bytes: Option<u64>, "bytes",
            "Content-Length of the response.";
        complete_bytes: Option<u64>, "bytes",
            "Complete length of the representation of a 206, from its Content-Range.";
        received_bytes: Option<u64>, "bytes",
            "Content that the client received, as it was transferred (without chunk framing).";
        next_hop_bytes: Option<u64>, "bytes",
            "Content fetched from the next hop for this transaction.";
        request_head_bytes: Option<u32>, "bytes",
            "The request head.";
        response_head_bytes: Option<u32>, "bytes",
            "The response head.";
        request_content_bytes: Option<u64>, "bytes",
            "Content of the request.";
    }
    "end" {
        aborted_by: Option<AbortedBy>, "word",
            "The side that ended the transfer early.";
        is_persistent_client: Option<bool>, "",
            "Whether the client's connection could carry another request afterwards.";
        is_persistent_server: Option<bool>, "",
            "Whether the next hop's connection could carry another request afterwards.";
        verdict: Option<String>, "",
            "How the traced cache handled it, in the words of its `Cache-Status`, or of its log.";
        node_choice: Option<String>, "word",
            "Why this node of the cluster was asked, or the origin: the word of the access log's `node_choice`. Since version 2.";
        next_hop_choice: Option<String>, "word",
            "Why this next hop of its route was asked: the word of the access log's `next_hop_choice`. Since version 2.";
        next_access: Option<i64>, "row",
            "Place in the trace, from 0, of the next row with the same target; -1: there is none.";
    }
}

impl Row {
    /// [`Row::vary`] of a response without a Vary field.
    pub const VARY_NONE: u64 = 0;
    /// [`Row::vary`] of a response with `Vary: *`.
    pub const VARY_ALL: u64 = u64::MAX;

    /// The size of what was transferred: what the client received, else what was declared.
    #[must_use]
    pub fn content_bytes(&self) -> Option<u64> {
        self.received_bytes.or(self.declared_bytes)
    }
}

impl Batch {
    /// How many rows there are.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }
}
