//! Collapsed requests: one asks, the others wait, read, take over, or ask for themselves.

use crate::collapse_script::check;

#[test]
fn concurrent_requests_for_a_target_follow_one_leader() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 want r2              => wait g0
         0 want r3 /b           => lead g1
         0 is-awaited g0        => true
         0 is-awaited g1        => false
         5 stored g0            => r1 look-up g0, r2 look-up g0
         5 is-awaited g0        => false
         5 want r4              => lead g2",
    );
}

#[test]
fn followers_and_newcomers_read_the_in_flight_response() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         5 head g0 page         => r1 read g0 page
         6 want r2              => read g0 page
         6 is-awaited g0        => true
         7 leave r1             => idle page
         7 is-awaited g0        => false
         9 close g0             => page
         9 want r3              => lead g1",
    );
}

#[test]
fn request_of_a_node_does_not_wait_for_one_that_was_sent_to_a_node() {
    check(
        "0 want r0              => lead g0
         0 want r1 of-node      => wait g0
         0 want r2              => wait g0
         1 sent-to-node g0      => r1 look-up g0
         1 pass r1 g0
         1 want r1 of-node      => lead g1
         1 want r3 of-node      => wait g1
         1 want r4              => wait g0
         1 sent-to-origin g1
         2 head g1 page         => r3 read g1 page
         3 leave r2
         3 leave r4             => r0 not-awaited
         4 want r5 of-node      => read g1 page
         5 want r6 /b           => lead g2
         5 want r7 /b of-node   => wait g2
         5 sent-to-node g2      => r7 look-up g2, r6 not-awaited
         6 want r8 /c of-node   => lead g3
         6 sent-to-origin g3
         6 want r9 /c           => wait g3
         6 want r10 /c of-node  => wait g3
         7 failed g3            => r9 take-over g3
         7 sent-to-node g3      => r10 look-up g3, r9 not-awaited
         8 want r11 /d          => lead g4
         8 sent-to-node g4
         8 sent-to-origin g4
         8 want r12 /d of-node  => wait g4",
    );
}

#[test]
fn in_flight_response_is_awaited_until_the_last_follower_reads_or_leaves() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 want r2              => wait g0
         5 head g0 page         => r1 read g0 page, r2 read g0 page
         6 leave r1
         6 leave r1
         6 is-awaited g0        => true
         7 leave r2             => idle page",
    );
}

#[test]
fn variant_is_read_only_by_requests_it_answers() {
    check(
        "0 want r0 de           => lead g0
         0 want r1 fr           => wait g0
         5 head g0 page.de      => r1 read g0 page.de
         5 pass r1 g0
         5 want r1 fr           => lead g1
         5 leave r1             => idle page.de
         6 want r2 de           => read g0 page.de
         6 want r3 fr           => wait g1
         7 head g1 page.fr      => r3 read g1 page.fr
         7 want r4 fr           => read g1 page.fr
         7 want r5 de           => read g0 page.de",
    );
}

#[test]
fn request_asks_for_itself_after_passing_three_groups() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         1 leave r1             => r0 not-awaited
         1 pass r1 g0
         1 want r1              => lead g1
         1 pass r1 g1
         1 publish page /       => g2
         1 want r1              => read g2 page
         1 pass r1 g2
         1 want r1              => bypass
         1 want r2              => read g2 page",
    );
}

#[test]
fn request_of_a_known_variant_does_not_wait_for_another_variant() {
    check(
        "0 want r0 de           => lead g0
         0 want r1 fr           => wait g0
         0 want r2 en           => wait g0
         0 want r3 fr           => wait g0
         1 head g0 page.de      => r1 read g0 page.de, r2 read g0 page.de, r3 read g0 page.de
         1 want r1 fr           => lead g1
         1 want r2 en           => lead g2
         1 want r3 fr           => wait g1
         1 want r4 en           => wait g2
         1 want r5 it           => lead g3",
    );
}

#[test]
fn group_asks_for_the_variant_of_the_follower_that_took_over() {
    check(
        "0 publish page.de /    => g0
         0 want r0 fr           => lead g1
         0 want r1 fr           => wait g1
         0 withdraw g0
         0 want r2 it           => wait g1
         1 failed g1            => r1 take-over g1
         1 want r3 fr           => wait g1
         2 disconnected g1      => r2 take-over g1
         2 publish page.en /    => g2
         2 want r4 de           => wait g1",
    );
}

#[test]
fn request_does_not_rejoin_a_group_it_passed() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         1 leave r1             => r0 not-awaited
         1 pass r1 g0
         1 want r1              => lead g1
         1 want r2              => wait g0",
    );
}

#[test]
fn first_follower_that_may_lead_takes_over_from_a_failed_leader() {
    check(
        "0 want r0              => lead g0
         0 want r1 cannot-lead  => wait g0
         0 want r2              => wait g0
         0 want r3 cannot-lead  => wait g0
         0 want r4              => wait g0
         1 failed g0            => r1 bypass, r2 take-over g0
         1 want r5              => wait g0
         2 head g0 page         => r3 read g0 page, r4 read g0 page, r5 read g0 page",
    );
}

#[test]
fn followers_bypass_after_two_leaders_fail() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 want r2              => wait g0
         0 want r3              => wait g0
         1 failed g0            => r1 take-over g0
         2 failed g0            => r2 bypass, r3 bypass
         2 is-empty             => true
         2 want r4              => lead g1",
    );
}

#[test]
fn leader_whose_client_disconnected_does_not_count() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 want r2              => wait g0
         0 want r3              => wait g0
         1 disconnected g0      => r1 take-over g0
         2 disconnected g0      => r2 take-over g0
         3 failed g0            => r3 take-over g0
         4 failed g0
         4 is-empty             => true",
    );
}

#[test]
fn group_ends_when_its_leader_fails_without_followers_that_may_lead() {
    check(
        "0 want r0              => lead g0
         0 failed g0
         0 is-empty             => true
         0 want r1              => lead g1
         0 want r2 cannot-lead  => wait g1
         0 failed g1            => r2 bypass
         0 is-empty             => true",
    );
}

#[test]
fn leader_is_told_when_its_last_follower_leaves() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 want r2              => wait g0
         1 leave r1
         1 leave r2             => r0 not-awaited
         1 want r3              => wait g0
         2 failed g0            => r3 take-over g0
         2 want r4              => wait g0
         3 leave r4             => r3 not-awaited",
    );
}

#[test]
fn refused_target_is_hit_for_miss_until_its_time_is_over() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         5 refused g0 100       => r1 bypass
         5 want r2              => bypass
         99 want r3             => bypass
         99 want r4 /b          => lead g1
         100 want r5            => lead g2
         100 refused g2",
    );
    // an end that is not after now is none, nor is one that was not given
    check(
        "5 want r0              => lead g0
         5 refused g0 5
         5 want r1              => lead g1
         5 refused g1
         5 want r2              => lead g2",
    );
}

#[test]
fn target_whose_response_is_shared_is_not_hit_for_miss_any_more() {
    for shared in ["shared /", "publish page /", "forget /b"] {
        let answer = match shared {
            "shared /" => "3 want r1 => lead g1",
            "publish page /" => "3 want r1 => read g1 page",
            _ => "3 want r1 => bypass",
        };
        let name = if shared.starts_with('p') {
            " => g1"
        } else {
            ""
        };
        check(&format!(
            "0 want r0              => lead g0
             0 refused g0 100
             2 {shared}{name}
             {answer}"
        ));
    }
}

#[test]
fn hit_for_miss_target_still_shares_what_is_asked_for_already() {
    check(
        "0 want r0              => lead g0
         0 want r1              => wait g0
         0 pass r2 g0
         0 want r2              => lead g1
         1 refused g0 100       => r1 bypass
         1 want r3              => wait g1
         2 stored g1            => r3 look-up g1
         2 want r4              => lead g2",
    );
}

/// The table of this script has two places.
#[test]
fn full_hit_for_miss_table_forgets_the_target_that_ends_first() {
    check(
        "0 want r0 /a           => lead g0
         0 refused g0 200
         0 want r1 /b           => lead g1
         0 refused g1 100
         0 want r2 /c           => lead g2
         0 refused g2 300
         0 want r3 /a           => bypass
         0 want r4 /b           => lead g3
         0 want r5 /c           => bypass
         200 refused g3 400
         200 want r6 /a         => lead g4
         200 want r7 /b         => bypass
         200 want r8 /c         => bypass",
    );
}

#[test]
fn published_response_is_read_by_newcomers_before_older_groups() {
    check(
        "0 want r0              => lead g0
         1 publish page /       => g1
         1 want r1              => read g1 page
         2 publish other /      => g2
         2 want r2              => read g2 other
         3 withdraw g2
         3 want r3              => read g1 page
         4 close g1             => page
         4 want r4              => wait g0
         5 close g2             => other
         6 stored g0            => r4 look-up g0
         6 is-empty             => true",
    );
}

#[test]
fn purged_target_begins_a_new_group_and_keeps_its_followers() {
    for forget in ["forget /", "forget-all"] {
        check(&format!(
            "0 want r0              => lead g0
             0 want r1              => wait g0
             0 publish old /        => g1
             1 {forget}
             1 want r2              => lead g2
             2 head g0 page         => r1 read g0 page
             2 want r3              => wait g2
             3 leave r1             => idle page
             4 close g0             => page
             4 close g1             => old
             4 stored g2            => r3 look-up g2
             4 is-empty             => true"
        ));
    }
}

#[test]
fn request_beyond_the_follower_maximum_leads_its_own_group() {
    check(
        "0 want r0                           => lead g0
         0 want r1 followers=2               => wait g0
         0 want r2 followers=2               => wait g0
         0 want r3 followers=2               => lead g1
         0 want r4 followers=2 cannot-lead   => wait g1
         0 leave r1
         0 want r5 followers=2               => wait g0
         0 want r6 followers=0               => lead g2",
    );
}

#[test]
fn request_that_may_neither_lead_nor_wait_bypasses() {
    check(
        "0 want r0 cannot-lead  => bypass
         0 want r1              => lead g0
         0 want r2 cannot-wait  => bypass
         1 head g0 page
         1 want r3 cannot-wait  => read g0 page
         1 want r4 /b cannot-wait => lead g1",
    );
}

#[test]
fn target_has_at_most_64_open_groups() {
    let leads: Vec<String> = (0..64)
        .map(|number| format!("0 want r{number} followers=0 => lead g{number}"))
        .collect();
    let leads = leads.join("\n");
    let script = [
        leads.as_str(),
        "0 want r64 followers=0         => bypass",
        "0 publish page /               => none",
        "1 head g63 page.de",
        "1 want r65 de followers=0      => read g63 page.de",
        "2 withdraw g63",
        "2 want r66 followers=0         => lead g64",
        "2 close g63                    => page.de",
        "2 forget /",
        "2 want r67 followers=0         => lead g65",
    ];
    check(&script.join("\n"));
}
