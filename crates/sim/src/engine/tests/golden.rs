//! Outcomes that were once looked at, kept to the last byte: what makes the simulator faster
//! changes none of them.
//!
//! Whoever changes what is simulated changes these numbers too, and says so.

use super::invariants::{aborting, all_settings, wild};
use super::world::*;
use crate::settings::{Network, Settings};
use weir_policy::Profile;
use weir_workload::trace::Row;

/// FNV-1a of all outcomes' JSON, one after the other.
fn fingerprint(settings: &[Settings], rows: &[Row]) -> Vec<u64> {
    let text = |settings| serde_json::to_string(&run(settings, rows)).unwrap();
    let hash = |text: String| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    settings.iter().map(text).map(hash).collect()
}

#[test]
fn random_trace_outcomes_match_the_recorded_fingerprints() {
    let found = fingerprint(&all_settings(), &wild(77, 1500));
    assert_eq!(found, WILD, "{found:#x?}");
}

#[test]
fn ordinary_trace_outcomes_match_the_recorded_fingerprints() {
    let mut rows: Vec<Row> = (0..6).flat_map(aborting).collect();
    rows.sort_by_key(|row| row.arrival_us);
    let networks = Network::PRESETS.map(|(_, network)| Settings::of(network, Profile::Http1998));
    let all: Vec<Settings> = networks
        .iter()
        .flat_map(|all| [all.clone(), all.without_proxy(), all.without_caches()])
        .collect();
    let found = fingerprint(&all, &rows);
    assert_eq!(found, ORDINARY, "{found:#x?}");
}

/// One for each of `all_settings`.
const WILD: [u64; 12] = [
    0x90c6_8337_973c_05b5,
    0xc6b9_0d05_bb74_b931,
    0x2041_f0e1_7ed3_2b93,
    0xaa8f_5cd4_67c6_4cf2,
    0x6a99_dd71_08aa_ac47,
    0xf890_d6ff_6f7f_98fa,
    0xb02a_afb6_6a4b_6b76,
    0xa032_7235_65ed_a4b2,
    0x2f47_693a_8ad9_2018,
    0xf112_c50a_36ac_6244,
    0xd1c0_1e63_41fc_2fb5,
    0x1acf_0b78_8124_0da5,
];

/// Three for each network: the proxy, none, and one without caches.
const ORDINARY: [u64; 21] = [
    0x2ceb_165e_9500_e8d8,
    0xb694_d000_4bd8_c4c3,
    0x7c4e_8444_6104_2053,
    0x7df7_fda5_79b0_f7b0,
    0x7ce4_4439_4fc2_a1ae,
    0xccfa_69e0_2ce3_c58d,
    0x94fe_2474_4c3b_e554,
    0x51fa_e098_ce02_40a0,
    0x5d94_6ba4_73ef_1e45,
    0xd1db_8300_08b3_fc50,
    0x05dc_1fbf_d377_a8fc,
    0x5c99_7e7f_c200_3362,
    0x4f43_ab27_e3ac_e022,
    0xa3ff_e8a1_3a08_548c,
    0x436d_1697_731d_fc4c,
    0xfb5a_5e94_415f_3bee,
    0x7c7a_f7fe_369a_a539,
    0x79f8_2f8d_f1f7_15d3,
    0x4bb8_8a9e_cdc7_45e1,
    0xb406_c82a_7c2d_6ae0,
    0xd2e6_6e48_5f2e_fb74,
];
