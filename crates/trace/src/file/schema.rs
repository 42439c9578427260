//! The Parquet schema of a trace, and whether a file has it.

use crate::error::Wrong;
use crate::row::Column;
use crate::row::column::ColumnType;
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, SchemaDescriptor, Type, TypePtr};
use std::sync::Arc;

/// The writer's name in the footer: only such files are sealed.
pub(super) const WRITTEN_BY: &str = concat!("weir trace ", env!("CARGO_PKG_VERSION"));

/// How [`WRITTEN_BY`] begins in every version.
pub(super) const WRITTEN_BY_US: &str = "weir trace ";

/// All columns, in order.
pub(super) fn schema() -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, ParquetError> =
        Column::ALL.iter().map(|column| field(*column)).collect();
    let message = Type::group_type_builder("weir_trace").with_fields(fields?);
    Ok(Arc::new(message.build()?))
}

fn field(column: Column) -> Result<TypePtr, ParquetError> {
    let about = column.about();
    let (physical, logical) = types(about.column_type);
    let field = Type::primitive_type_builder(about.name, physical)
        .with_repetition(if about.is_optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        })
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn types(column_type: ColumnType) -> (Physical, Option<LogicalType>) {
    match column_type {
        ColumnType::Time => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        ),
        ColumnType::Int64 => (Physical::INT64, None),
        ColumnType::Uint64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        ColumnType::Uint32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
        ColumnType::Uint16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
        ColumnType::Bool => (Physical::BOOLEAN, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    }
}

/// How it is written. Snappy: every reader has it, and it is pure Rust here; zstd would need a C
/// compiler.
pub(super) fn properties() -> WriterProperties {
    let path = |column: Column| ColumnPath::from(column.name());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(WRITTEN_BY.into())
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // rises from row to row, so that differences are small
        .set_column_dictionary_enabled(path(Column::arrival_us), false)
        .set_column_encoding(path(Column::arrival_us), Encoding::DELTA_BINARY_PACKED);
    for column in Column::ALL
        .iter()
        .filter(|column| column.about().unit == "hash")
    {
        // least and greatest of hashes say nothing
        properties =
            properties.set_column_statistics_enabled(path(*column), EnabledStatistics::None);
    }
    properties.build()
}

/// Where each column is in the file.
pub(super) type Places = [Option<usize>; Column::ALL.len()];

/// Where each of our columns is.
///
/// # Errors
/// One that is unknown, missing though it must be there, or of another type.
pub(super) fn places(schema: &SchemaDescriptor) -> Result<Places, Wrong> {
    let mut places: Places = [None; Column::ALL.len()];
    for (index, found) in schema.columns().iter().enumerate() {
        let path = found.path().string();
        let Some(column) = Column::from_name(&path) else {
            return Err(unknown(&path));
        };
        check(column, found)?;
        if places[column as usize].replace(index).is_some() {
            return Err(Wrong::usage(
                format!("column `{path}` is there twice"),
                "leave one out",
            ));
        }
    }
    let mut missing = Column::ALL
        .iter()
        .filter(|column| !column.about().is_optional && places[**column as usize].is_none());
    if let Some(column) = missing.next() {
        return Err(Wrong::usage(
            format!("column `{}` is missing", column.name()),
            "a trace has at least a time and a target in each row; `weir trace import` makes one of a log",
        ));
    }
    Ok(places)
}

fn unknown(name: &str) -> Wrong {
    let near = |column: &&Column| strsim::damerau_levenshtein(column.name(), name) <= 2;
    let hint = match Column::ALL.iter().find(near) {
        Some(column) => format!("did you mean `{}`?", column.name()),
        None => {
            format!(
                "leave it out, in SQL: select * exclude ({name}); docs/trace.md lists the columns"
            )
        }
    };
    Wrong::usage(format!("column `{name}` is unknown"), hint)
}

fn check(column: Column, found: &ColumnDescriptor) -> Result<(), Wrong> {
    let about = column.about();
    if found.max_rep_level() > 0 || found.max_def_level() > 1 {
        return Err(Wrong::usage(
            format!("column `{}` is a list or a structure", about.name),
            "a row has one value in each column",
        ));
    }
    if fits(about.column_type, found) {
        return Ok(());
    }
    let logical = match found.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => format!(" (timestamp, {:?})", time.unit),
        Some(logical) => format!(" ({logical:?})"),
        None => String::new(),
    };
    Err(Wrong::usage(
        format!(
            "column `{}` is {}{logical}, not {}",
            about.name,
            found.physical_type(),
            about.column_type.as_str()
        ),
        format!("in SQL: {}::{}", about.name, about.column_type.in_sql()),
    ))
}

/// Older writers say with a converted type what newer ones say with a logical one.
fn fits(column_type: ColumnType, found: &ColumnDescriptor) -> bool {
    let (physical, logical) = types(column_type);
    if found.physical_type() != physical {
        return false;
    }
    match (found.logical_type_ref(), column_type) {
        // a wall clock without a zone is taken for UTC
        (Some(LogicalType::Timestamp(time)), ColumnType::Time) => time.unit == TimeUnit::MICROS,
        (Some(found), ColumnType::Int64) => *found == LogicalType::integer(64, true),
        (Some(found), _) => Some(found) == logical.as_ref(),
        (None, _) => {
            found.converted_type() == converted(column_type) || is_plain(column_type, found)
        }
    }
}

fn is_plain(column_type: ColumnType, found: &ColumnDescriptor) -> bool {
    column_type == ColumnType::Int64 && found.converted_type() == ConvertedType::NONE
}

const fn converted(column_type: ColumnType) -> ConvertedType {
    match column_type {
        ColumnType::Time => ConvertedType::TIMESTAMP_MICROS,
        ColumnType::Int64 => ConvertedType::INT_64,
        ColumnType::Uint64 => ConvertedType::UINT_64,
        ColumnType::Uint32 => ConvertedType::UINT_32,
        ColumnType::Uint16 => ConvertedType::UINT_16,
        ColumnType::Bool => ConvertedType::NONE,
        ColumnType::Text => ConvertedType::UTF8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::parser::parse_message_type;

    const LEAST: &str = "required int64 target (integer(64, false)); \
        required int64 arrival_us (timestamp(micros, true));";

    fn found(fields: &str) -> Result<Places, Wrong> {
        let schema = parse_message_type(&format!("message m {{ {fields} }}")).expect("a schema");
        places(&SchemaDescriptor::new(Arc::new(schema)))
    }

    fn check_refused(fields: &str, cause: &str, hint: &str) {
        let wrong = found(fields).expect_err("it is refused");
        assert!(wrong.cause.contains(cause), "{wrong:?}");
        let said = wrong.hint.clone().unwrap_or_default();
        assert!(said.contains(hint), "{wrong:?}");
    }

    #[test]
    fn own_schema_is_accepted() {
        let places = places(&SchemaDescriptor::new(schema().expect("a schema"))).expect("ours");
        for (index, place) in places.iter().enumerate() {
            assert_eq!(*place, Some(index));
        }
    }

    #[test]
    fn schema_with_only_target_and_arrival_time_is_accepted() {
        let places = found(LEAST).expect("it is a trace");
        assert_eq!(places[Column::target as usize], Some(0));
        assert_eq!(places[Column::arrival_us as usize], Some(1));
        assert_eq!(places.iter().flatten().count(), 2);
        let nullable = LEAST.replace("required", "optional");
        assert!(found(&nullable).is_ok());
        let old = "optional int64 target (uint_64); optional int64 arrival_us (timestamp_micros); \
            optional binary method (utf8); optional int64 date_s; optional int64 expires_s (int_64);";
        assert!(found(old).is_ok());
    }

    #[test]
    fn unknown_missing_or_wrongly_typed_column_is_refused() {
        let with = |field: &str| format!("{LEAST} {field}");
        check_refused(
            &with("optional int64 setup_uss;"),
            "`setup_uss` is unknown",
            "`setup_us`",
        );
        check_refused(
            &with("optional int64 colour;"),
            "`colour` is unknown",
            "exclude (colour)",
        );
        check_refused(
            "required int64 target (integer(64, false));",
            "`arrival_us` is missing",
            "",
        );
        let typed = [
            (
                "optional double setup_us;",
                "`setup_us` is DOUBLE, not uint64",
                "setup_us::ubigint",
            ),
            (
                "optional int64 setup_us;",
                "`setup_us` is INT64, not uint64",
                "setup_us::ubigint",
            ),
            (
                "optional binary method;",
                "`method` is BYTE_ARRAY, not string",
                "method::varchar",
            ),
        ];
        for (field, cause, hint) in typed {
            check_refused(&with(field), cause, hint);
        }
        check_refused(
            &with(
                "optional group client (list) { repeated group list { optional int64 element; } }",
            ),
            "`client.list.element` is unknown",
            "",
        );
        check_refused(
            &with("repeated int64 client (integer(64, false));"),
            "`client` is a list",
            "",
        );
        let nanos = LEAST.replace("micros", "nanos");
        check_refused(
            &nanos,
            "is INT64 (timestamp, NANOS), not timestamp, us, UTC",
            "arrival_us::timestamptz",
        );
    }
}
