//! What a library finds wrong, in words: the texts of its errors are names in its code.

use std::fmt::Debug;

/// The name of a variant as words: "bad der time" for `BadDerTime`. What the variant holds is left
/// out.
pub(super) fn variant_words(variant: &impl Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.split(|it: char| !it.is_ascii_alphanumeric()).next();
    let mut words = String::new();
    for letter in name.unwrap_or_default().chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_is_said_in_words_without_what_it_holds() {
        assert_eq!(variant_words(&webpki::Error::BadDerTime), "bad der time");
        assert_eq!(variant_words(&Some(webpki::Error::BadDer)), "some");
    }
}
