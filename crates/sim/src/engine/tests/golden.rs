//! Outcomes that were once looked at, kept to the last byte: what makes the simulator faster
//! changes none of them.
//!
//! A commit that changes what is simulated changes these numbers, too, and says so.

use super::invariants::{aborting, all_settings, wild};
use super::world::*;
use crate::settings::{Network, Settings};
use weir_policy::Profile;
use weir_trace::Row;

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
    0x774e_17ea_de09_5c79,
    0xe2bc_1e26_2f3d_98f5,
    0xeeec_0758_186c_9c69,
    0x7b3d_cdb6_df03_e784,
    0x67d6_5b56_ca71_66b3,
    0x45f2_511f_9258_7747,
    0x41f7_4511_11a2_9765,
    0xc6bc_35da_011e_7b98,
    0xc79a_0499_b201_f047,
    0x2500_fc08_805b_5b1b,
    0xe6f8_a190_d088_52c7,
    0x3ef1_f262_5363_dc6f,
];

/// Three for each network: the proxy, none, and one without caches.
const ORDINARY: [u64; 21] = [
    0x8e6e_154d_904c_00e4,
    0xac82_c43a_c381_8b97,
    0xfe42_4de3_77f7_4697,
    0x74a3_e614_7985_8f64,
    0xa1d8_3a9e_17b8_18ca,
    0x3bb0_6fe7_795c_c231,
    0xaa83_0cf1_56bf_d098,
    0xcfed_44f6_990b_e7d4,
    0x7ff3_2022_5a5c_58d1,
    0xfa51_13fd_185a_85b4,
    0x46ca_d2ac_e2d7_79b0,
    0x68e1_e18b_81b5_4fa6,
    0xe454_2144_5226_2a1e,
    0x260c_9203_9e32_0700,
    0xf8c1_5304_7fd1_93b8,
    0x1fb3_30c4_e651_9dea,
    0x3f12_a781_43f1_f335,
    0x0d4a_90ad_0319_b4c7,
    0x8f49_7ff2_c51f_5fc5,
    0xe9fb_f3c7_bac1_fa14,
    0x43b2_5b71_163e_a7c8,
];
