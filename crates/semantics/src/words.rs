//! Enums whose variants are words of the protocol: each declared once, with its word and meaning.

/// Declares an enum whose variants are reasons. The comment above a variant is its documentation
/// and its paragraph in the reference, and the word beside it is what `Cache-Status`, log and
/// counters show. Behind `of` stand the variants that hold a reason declared elsewhere.
#[macro_export]
macro_rules! words {
    (
        $(#[$outer:meta])*
        pub enum $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident $({ $( $(#[$of_field:meta])* $field:ident: $type:ty, )+ })? = $word:literal,
            )+
            $( of $( $(#[$of_wrapper:meta])* $wrapper:ident($inner:ty), )+ )?
        }
    ) => {
        $(#[$outer])*
        pub enum $name {
            $(
                $(#[doc = $doc])+
                $variant $({ $( $(#[$of_field])* $field: $type, )+ })?,
            )+
            $( $( $(#[$of_wrapper])* $wrapper($inner), )+ )?
        }

        impl $name {
            /// The words declared here, each with its meaning in a paragraph.
            pub const WORDS: &'static [(&'static str, &'static str)] =
                &[$( ($word, concat!($($doc),+)), )+];

            /// The word: the same in `Cache-Status`, log, counters and the simulator's tables.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant { .. } => $word, )+
                    $( $( Self::$wrapper(reason) => reason.as_str(), )+ )?
                }
            }
        }

        $crate::words!(
            @all $name $( $variant $({ $( $field )+ })? )+ $( ; $( $wrapper )+ )?
        );
    };
    (@all $name:ident $( $variant:ident )+) => {
        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: [Self; Self::WORDS.len()] = [ $( Self::$variant, )+ ];
        }
    };
    (@all $($with_data:tt)+) => {};
}
