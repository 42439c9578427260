//! What a request does when every connection to its next hop is busy.

use crate::config::values::text::choice;

choice! {
    /// The rules of `weir_policy::connections::WhenBusy`, by the same words.
    pub enum WhenBusy {
        /// Open a connection.
        Open = "open",
        /// Wait where that is expected to be sooner than a set-up.
        WaitIfSooner = "wait-if-sooner",
        /// Open one, and take whichever is free first.
        Race = "race",
    }
}

impl WhenBusy {
    /// The rule.
    pub(crate) const fn rule(self) -> weir_policy::connections::WhenBusy {
        use weir_policy::connections::WhenBusy as Rule;
        match self {
            Self::Open => Rule::Open,
            Self::WaitIfSooner => Rule::WaitIfSooner,
            Self::Race => Rule::Race,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_word_selects_the_policy_rule_of_the_same_name() {
        for choice in [WhenBusy::Open, WhenBusy::WaitIfSooner, WhenBusy::Race] {
            assert_eq!(choice.as_str(), choice.rule().as_str());
        }
        let default = crate::config::Limits::default().next_hop_busy;
        assert_eq!(
            default.rule(),
            weir_policy::connections::WhenBusy::default()
        );
    }
}
