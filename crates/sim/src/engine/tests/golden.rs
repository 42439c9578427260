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
    0xe229_e7ee_060e_a291,
    0x92b4_ff6f_45de_998d,
    0x7f59_d2e1_529c_5a83,
    0x2788_535a_7cb7_4a91,
    0x30f8_2390_ac9c_f2a4,
    0xc941_37cf_a016_1fe0,
    0x115f_0e73_6148_66c2,
    0xea0b_a33b_02a3_28fc,
    0x9d22_f15d_f4cc_80d3,
    0xcec5_ba26_7555_811b,
    0x23a3_1ee9_678e_7956,
    0x9a29_aebf_55f2_51be,
];

/// Three for each network: the proxy, none, and one without caches.
const ORDINARY: [u64; 21] = [
    0x3c22_d085_b0be_0375,
    0x523c_ffa2_c6e5_0f2a,
    0x9726_165a_3ba5_cf9a,
    0xd0ac_a074_f38c_a6cd,
    0x5680_0866_176c_9fdb,
    0x53bf_c16d_34f0_ed84,
    0x53cf_4dcd_01c6_d229,
    0xabb9_7ad9_ee6a_ffdd,
    0x097a_79fc_c49b_9efc,
    0x4e60_e85b_024b_a7ed,
    0xdb53_e6e4_e3d3_e311,
    0xf04d_c38c_f93f_dc57,
    0xdabe_7ba1_ae30_8c17,
    0xe529_7e94_c88d_d801,
    0x3452_02f2_6dd8_95c1,
    0xe754_8857_18eb_bc1b,
    0x0f56_acae_765a_0008,
    0xe6ea_bb03_9b4a_b91a,
    0xb200_cdac_6642_db90,
    0xb633_6abc_8e45_1a1d,
    0xa87f_9061_bfb8_2bc9,
];
