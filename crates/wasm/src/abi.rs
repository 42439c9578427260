//! Numbers of the ABI as types: statuses, actions, levels, kinds of metrics.
//!
//! The specification's section *Types*.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZeroU32;

/// Declares an enumeration whose variants have the numbers of the specification.
macro_rules! numbers {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$variant_about:meta])* $variant:ident = $number:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_about])* $variant = $number,)*
        }

        impl $name {
            /// The value with this number, if there is one.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The number that modules use.
            #[must_use]
            pub const fn number(self) -> u32 {
                self as u32
            }
        }
    };
}

numbers! {
    /// Why a call of the host failed (`proxy_status_t`).
    ///
    /// A method of [`Host`](crate::Host) fails with one of these. `Ok` is there because it has a
    /// number; a failure with it is a success for the module.
    pub enum Status {
        /// Success.
        Ok = 0,
        /// There is no such key, property, metric or function.
        NotFound = 1,
        /// An argument is out of its range, or does not apply now.
        BadArgument = 2,
        /// The host cannot serialise the result.
        SerializationFailure = 3,
        /// The host cannot parse an argument.
        ParseFailure = 4,
        /// A pointer and a length do not lie in the memory of the module.
        InvalidMemoryAccess = 6,
        /// There is nothing to take.
        Empty = 7,
        /// The compare-and-swap value is not the current one.
        CasMismatch = 8,
        /// The host failed, or a limit is reached.
        InternalFailure = 10,
        /// The host does not implement the call.
        Unimplemented = 12,
    }
}

numbers! {
    /// What becomes of a stream after a callback (`proxy_action_t`).
    pub enum Action {
        /// The message goes on.
        Continue = 0,
        /// The message waits until [`Host::continue_stream`](crate::Host::continue_stream).
        Pause = 1,
    }
}

numbers! {
    /// The level of a log line (`proxy_log_level_t`).
    pub enum LogLevel {
        /// Finest detail.
        Trace = 0,
        /// For the author of the module.
        Debug = 1,
        /// Normal operation; standard output too.
        Info = 2,
        /// Something is wrong that the module can handle.
        Warn = 3,
        /// Something failed; standard error too.
        Error = 4,
        /// The module is about to fail.
        Critical = 5,
    }
}

numbers! {
    /// How a metric counts (`proxy_metric_type_t`).
    pub enum MetricKind {
        /// It only grows.
        Counter = 0,
        /// It is set, and grows and shrinks.
        Gauge = 1,
        /// It has values recorded.
        Histogram = 2,
    }
}

/// One of the two messages of a stream context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The request.
    Request,
    /// The response.
    Response,
}

/// A map of fields that a [`Host`](crate::Host) answers for.
///
/// The header maps have the pseudo-header fields of HTTP/2 (`:method`, `:path`, `:authority`,
/// `:status`), and filters expect names in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpMap {
    /// The header section of the request.
    RequestHeaders,
    /// The trailer section of the request.
    RequestTrailers,
    /// The header section of the response.
    ResponseHeaders,
    /// The trailer section of the response.
    ResponseTrailers,
}

/// Identifies a context within an instance: the plugin context, or one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(NonZeroU32);

impl ContextId {
    /// The plugin context of every instance.
    pub const PLUGIN: Self = Self(NonZeroU32::MIN);

    /// The context of a number that is not zero.
    #[cfg(feature = "vm")]
    pub(crate) const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number that the module uses.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What belongs to contexts. Its room is kept for the next ones.
pub type ContextMap<T> = HashMap<ContextId, T, BuildHasherDefault<ContextHasher>>;

/// The hash of the number of a context. The numbers are the host's own and follow one another, so
/// that any spread of them will do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextHasher(u64);

impl Hasher for ContextHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        // the golden ratio in 64 bits: the high bits differ as the low ones do
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }
}

/// A version of the ABI that the host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AbiVersion {
    /// The Go SDK's. All its calls that are implemented here are those of 0.2.1.
    V0_2_0,
    /// The Rust SDK's.
    V0_2_1,
}

impl AbiVersion {
    /// The start of the names of the marker exports.
    #[cfg(feature = "vm")]
    pub(crate) const MARKER_PREFIX: &str = "proxy_abi_version_";

    /// The version whose marker export has this name.
    #[cfg(feature = "vm")]
    pub(crate) fn from_marker(export: &str) -> Option<Self> {
        match export.strip_prefix(Self::MARKER_PREFIX)? {
            "0_2_0" => Some(Self::V0_2_0),
            "0_2_1" => Some(Self::V0_2_1),
            _ => None,
        }
    }
}

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_2_0 => "0.2.0",
            Self::V0_2_1 => "0.2.1",
        })
    }
}
