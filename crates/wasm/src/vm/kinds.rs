//! Numbers that only calls have: maps, buffers, streams.

/// Declares an enumeration whose variants have the numbers of the specification.
macro_rules! kinds {
    ($(#[$about:meta])* enum $name:ident { $($variant:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant,)*
        }

        impl $name {
            /// The value with this number, if there is one.
            pub(crate) const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A map of fields (`proxy_map_type_t`). The ones of HTTP calls are the crate's to answer.
    enum MapKind {
        RequestHeaders = 0,
        RequestTrailers = 1,
        ResponseHeaders = 2,
        ResponseTrailers = 3,
        GrpcInitialMetadata = 4,
        GrpcTrailingMetadata = 5,
        HttpCallResponseHeaders = 6,
        HttpCallResponseTrailers = 7,
    }
}

kinds! {
    /// A buffer (`proxy_buffer_type_t`).
    enum BufferKind {
        RequestBody = 0,
        ResponseBody = 1,
        DownstreamData = 2,
        UpstreamData = 3,
        HttpCallResponseBody = 4,
        GrpcCallMessage = 5,
        VmConfiguration = 6,
        PluginConfiguration = 7,
        ForeignFunctionArguments = 8,
    }
}

kinds! {
    /// A stream (`proxy_stream_type_t`).
    enum StreamKind {
        HttpRequest = 0,
        HttpResponse = 1,
        Downstream = 2,
        Upstream = 3,
    }
}
