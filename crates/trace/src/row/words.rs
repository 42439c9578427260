//! Values of columns that are words, or sets of words.

/// Defines an enum whose variants have one spelling each, in files, flags and tables alike.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:expr,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$meaning])* $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As it is spelt.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one that is spelt so.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The request's method. What has no variant is `Other`: no cache treats it in a way of its
    /// own.
    TraceMethod {
        /// `GET`.
        Get = "GET",
        /// `HEAD`.
        Head = "HEAD",
        /// `POST`.
        Post = "POST",
        /// `PUT`.
        Put = "PUT",
        /// `DELETE`.
        Delete = "DELETE",
        /// `PATCH`.
        Patch = "PATCH",
        /// `OPTIONS`.
        Options = "OPTIONS",
        /// `TRACE`.
        Trace = "TRACE",
        /// `CONNECT`.
        Connect = "CONNECT",
        /// Any other.
        Other = "other",
    }
}

words! {
    /// The target's scheme.
    TraceScheme {
        /// `http`.
        Http = "http",
        /// `https`.
        Https = "https",
    }
}

words! {
    /// The version of HTTP between client and proxy.
    TraceVersion {
        /// 0.9.
        Http09 = "0.9",
        /// 1.0.
        Http10 = "1.0",
        /// 1.1.
        Http11 = "1.1",
        /// 2.
        Http2 = "2",
        /// 3.
        Http3 = "3",
    }
}

words! {
    /// The side that ended a transfer before its end.
    AbortedBy {
        /// Neither side: the transfer is complete. Files have the word of the first version.
        Neither = "nobody",
        /// The client left.
        Client = "client",
        /// The next hop closed, reset or fell silent.
        Server = "server",
    }
}
