//! Outcomes that were once looked at, kept to the last byte: what makes the simulator faster changes none of them.
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
fn outcome_of_a_wild_trace_is_another_one() {
    let found = fingerprint(&all_settings(), &wild(77, 1500));
    assert_eq!(found, WILD, "{found:#x?}");
}

#[test]
fn outcome_of_an_ordinary_trace_is_another_one() {
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
    0x7431_5300_249c_b763,
    0xeaaa_fc75_b4bc_7e0e,
    0x6fd4_4588_699a_4f84,
    0xb26b_9942_9f3b_d948,
    0xcab0_7783_81db_3455,
    0x8d6d_1840_e114_5f30,
    0x0e05_e464_8574_fb8c,
    0x07e7_2dd5_3eff_70e6,
    0xb03e_d17d_134a_37ba,
    0x8124_c777_619f_e0be,
    0x76ff_9894_b2b6_d7aa,
    0x1a5e_ce23_eb4e_4df9,
];

/// Three for each network: the proxy, none, and one without caches.
const ORDINARY: [u64; 21] = [
    0xa088_a478_5f1d_172c,
    0xdd56_005d_c70a_855b,
    0x1ea0_43e2_da4e_9621,
    0xfea0_f80b_0dbf_c698,
    0x1c21_9c6b_ef56_8bb0,
    0xce99_db0f_a172_2667,
    0x1a3c_dc37_70c5_dde0,
    0x73e5_64f4_28c4_97c6,
    0x8370_79c1_4c22_348d,
    0x7dc0_2cc5_91c0_5c7e,
    0xcbff_109d_09e3_8544,
    0x6499_4602_4123_06be,
    0xb4b2_c025_5157_0878,
    0x012f_5857_6f9f_5252,
    0x2c13_24f3_11aa_5dce,
    0xc2b8_6fc1_d2df_50bc,
    0x637c_a1d8_98d6_8ec5,
    0xf59d_b8c4_71f6_5d15,
    0x61d9_1451_38ff_fa57,
    0x6516_0ae8_abe7_144a,
    0x3e3b_ba44_38ca_319a,
];
