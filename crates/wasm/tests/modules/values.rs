//! Log, clock, timer, properties, foreign functions, shared data, metrics, configurations.

use crate::recorder::Recorder;
use crate::script::{expand, module, run, script, start, start_with};
use std::time::Duration;
use weir_wasm::{
    InstanceSettings, LOG_LINE_BYTES_MAX, Limits, LogLevel, MetricValue, Metrics,
    PROPERTY_PATH_BYTES_MAX, SharedData,
};

const DATA: &[(u32, &str)] = &[
    (100, "key"),
    (110, "value"),
    (120, r"a\00b\00"),
    (130, "plugin_name"),
    (150, "reverse"),
];

fn settings() -> InstanceSettings {
    InstanceSettings {
        plugin_name: "filter".to_owned(),
        vm_configuration: b"vm".as_slice().into(),
        plugin_configuration: b"plugin".as_slice().into(),
        ..InstanceSettings::default()
    }
}

/// Runs `statements` in an instance with these settings.
fn run_with(settings: InstanceSettings, statements: &str) -> Recorder {
    let text = script("proxy_on_request_headers", DATA, statements);
    let mut instance = start_with(&text, Recorder::with_messages(), settings).unwrap();
    let stream = instance.create_stream().unwrap();
    instance.request_headers(stream, true).unwrap();
    instance.into_host()
}

#[test]
fn line_has_its_level_and_context_and_a_limit() {
    let host = run(
        DATA,
        "proxy_log(6, 100, 3)
         proxy_log(5, 100, 5000)
         proxy_get_log_level(8)
         say(@8)",
    );
    assert_eq!(host.log[0], (Some(2), LogLevel::Info, b"2".to_vec()));
    let (context, level, line) = &host.log[1];
    assert_eq!((*context, *level), (Some(2), LogLevel::Critical));
    assert_eq!(line.len(), LOG_LINE_BYTES_MAX);
    assert_eq!(host.lines()[2..], ["0", "0", "3"]);
}

#[test]
fn clock_is_true() {
    let host = run(
        DATA,
        "proxy_get_current_time_nanoseconds(8)
         clock_time_get(0, 0L, 16)
         (i64.store (i32.const 8) (i64.div_u (i64.load (i32.const 8)) (i64.const 1000000000)))
         (i64.store (i32.const 16) (i64.div_u (i64.load (i32.const 16)) (i64.const 1000000000)))
         say(@8)
         say(@16)
         clock_time_get(1, 0L, 16)
         clock_time_get(2, 0L, 16)
         clock_res_get(1, 16)",
    );
    let lines = host.lines();
    let since_epoch = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    for line in &lines[2..4] {
        let seconds: u64 = line.parse().unwrap();
        assert!(since_epoch.as_secs() - seconds < 60, "{line}");
    }
    assert_eq!(lines[4..], ["0", "58", "0"]);
}

#[test]
fn tick_period_has_a_minimum() {
    let text = module(
        r#"(global $period (mut i32) (i32.const 1))
           (func (export "proxy_on_tick") (param i32)
               (drop (call $proxy_set_tick_period_milliseconds (global.get $period)))
               (global.set $period (i32.mul (global.get $period) (i32.const 100)))
               (if (i32.eq (global.get $period) (i32.const 10000))
                   (then (global.set $period (i32.const 0)))))"#,
    );
    let mut instance = start(&text);
    let periods: Vec<_> = (0..4)
        .map(|_| {
            let before = instance.tick_period();
            instance.tick().unwrap();
            before
        })
        .collect();
    let minimum = Limits::default().tick_period_min;
    let hundred = Duration::from_millis(100);
    assert_eq!(periods, [None, Some(minimum), Some(hundred), None]);
}

#[test]
fn properties_are_those_of_the_plugin_and_of_the_host() {
    let too_long = PROPERTY_PATH_BYTES_MAX + 1;
    let statements = format!(
        "proxy_get_property(130, 11, 0, 4)
         show
         proxy_get_property(120, 3, 0, 4)
         proxy_set_property(120, 4, 110, 5)
         proxy_get_property(120, 3, 0, 4)
         show
         proxy_get_property(0, {too_long}, 0, 4)"
    );
    let host = run_with(settings(), &statements);
    assert_eq!(host.lines(), ["0", "filter", "1", "0", "0", "value", "2"]);
    assert_eq!(host.properties[&b"a\0b"[..]], b"value");
}

#[test]
fn foreign_functions_are_called_both_ways() {
    let host = run(
        DATA,
        "proxy_call_foreign_function(150, 7, 100, 3, 0, 4)
         show
         proxy_call_foreign_function(100, 3, 100, 3, 0, 4)
         proxy_call_foreign_function(150, 7, 100, 3, 0, 0)",
    );
    assert_eq!(host.lines()[..3], ["0", "yek", "1"]);
    let text = module(&format!(
        r#"(func (export "proxy_on_foreign_function") (param i32 i32 i32)
               (call $say (local.get 1)) {})
           (func (export "proxy_on_tick") (param i32) {})"#,
        expand(
            "proxy_get_buffer_bytes(8, 0, 100, 0, 4)
             show"
        ),
        expand("proxy_get_buffer_bytes(8, 0, 100, 0, 4)")
    ));
    let mut instance = start(&text);
    instance.foreign_function(7, b"arguments".to_vec()).unwrap();
    instance.tick().unwrap();
    assert_eq!(instance.host().lines(), ["7", "0", "arguments", "1"]);
}

#[test]
fn shared_data_is_one_for_all_instances_with_the_handle() {
    let settings = InstanceSettings {
        shared_data: SharedData::default(),
        ..settings()
    };
    let first = run_with(
        settings.clone(),
        "proxy_get_shared_data(100, 3, 0, 4, 8)
         proxy_set_shared_data(100, 3, 110, 5, 0)",
    );
    assert_eq!(first.lines(), ["1", "0"]);
    let second = run_with(
        settings.clone(),
        "proxy_get_shared_data(100, 3, 0, 4, 8)
         show
         proxy_set_shared_data(100, 3, 110, 1, 77)
         proxy_set_shared_data(100, 3, 110, 1, @8)
         proxy_set_shared_data(100, 300, 110, 1, 0)",
    );
    assert_eq!(second.lines(), ["0", "value", "8", "0", "2"]);
    assert_eq!(&*settings.shared_data.get(b"key").unwrap().0, b"v");
}

#[test]
fn metrics_are_defined_changed_and_read() {
    let settings = InstanceSettings {
        metrics: Metrics::new(2),
        ..settings()
    };
    let host = run_with(
        settings.clone(),
        "proxy_define_metric(0, 100, 3, 8)
         proxy_define_metric(1, 110, 5, 12)
         proxy_define_metric(2, 120, 1, 16)
         proxy_define_metric(3, 120, 1, 16)
         proxy_increment_metric(@8, 3L)
         proxy_increment_metric(@8, -1L)
         proxy_record_metric(@12, 9L)
         proxy_get_metric(@8, 16)
         say(@16)
         proxy_get_metric(5, 16)
         proxy_increment_metric(5, 1L)
         proxy_record_metric(5, 1L)",
    );
    let expected = ["0", "0", "10", "2", "0", "2", "0", "0", "3", "1", "1", "1"];
    assert_eq!(host.lines(), expected);
    let values: Vec<_> = settings.metrics.read().iter().map(|it| it.value).collect();
    assert_eq!(values, [MetricValue::Counter(3), MetricValue::Gauge(9)]);
}

#[test]
fn configurations_can_be_read() {
    let host = run_with(
        settings(),
        "proxy_get_buffer_bytes(6, 0, 100, 0, 4)
         show
         proxy_get_buffer_bytes(7, 0, 100, 0, 4)
         show",
    );
    assert_eq!(host.lines(), ["0", "vm", "0", "plugin"]);
}
