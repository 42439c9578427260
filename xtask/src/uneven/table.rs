use super::record::Record;
pub(crate) fn render(_: &Record) -> String {
    String::new()
}
