//! Columns: what is known of each, and sets of them.

use crate::row::Column;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The part of the row it belongs to.
    pub section: &'static str,
    /// Its name, in the file and in [`Row`](crate::Row).
    pub name: &'static str,
    /// The unit; empty where there is none.
    pub unit: &'static str,
    /// A sentence.
    pub meaning: &'static str,
    /// How Parquet holds it.
    pub column_type: ColumnType,
    /// Null where the source does not say; a column that must be there otherwise.
    pub is_optional: bool,
}

/// How Parquet holds a column: physical and logical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `INT64`, `TIMESTAMP(MICROS, UTC)`.
    Time,
    /// `INT64`, signed.
    Int64,
    /// `INT64`, unsigned.
    Uint64,
    /// `INT32`, unsigned, 32 bits.
    Uint32,
    /// `INT32`, unsigned, 16 bits.
    Uint16,
    /// `BOOLEAN`.
    Bool,
    /// `BYTE_ARRAY`, UTF-8.
    Text,
}

impl ColumnType {
    /// As the document names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "timestamp, us, UTC",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Uint32 => "uint32",
            Self::Uint16 => "uint16",
            Self::Bool => "boolean",
            Self::Text => "string",
        }
    }

    /// What casts to it in SQL, for a hint.
    pub(crate) const fn in_sql(self) -> &'static str {
        match self {
            Self::Time => "timestamptz",
            Self::Int64 => "bigint",
            Self::Uint64 => "ubigint",
            Self::Uint32 => "uinteger",
            Self::Uint16 => "usmallint",
            Self::Bool => "boolean",
            Self::Text => "varchar",
        }
    }
}

impl Column {
    /// Its name, in the file and in [`Row`](crate::Row).
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// The one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|column| column.name() == name)
    }

    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

/// A set of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u64);

impl Columns {
    /// All there are.
    pub const ALL: Self = Self::of(Column::ALL);

    /// These.
    #[must_use]
    pub const fn of(columns: &[Column]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < columns.len() {
            bits |= columns[index].bit();
            index += 1;
        }
        Self(bits)
    }

    /// All but these.
    #[must_use]
    pub const fn without(columns: &[Column]) -> Self {
        Self(Self::ALL.0 & !Self::of(columns).0)
    }

    /// Whether it is one of them.
    #[must_use]
    pub const fn has(self, column: Column) -> bool {
        self.0 & column.bit() != 0
    }
}

const _: () = assert!(Column::ALL.len() <= 64, "a set of columns is 64 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_set_has_exactly_its_columns_and_names_round_trip() {
        let two = Columns::of(&[Column::target, Column::next_access]);
        for &column in Column::ALL {
            let is_one = matches!(column, Column::target | Column::next_access);
            assert_eq!(two.has(column), is_one, "{}", column.name());
            assert!(Columns::ALL.has(column));
            assert_eq!(Column::from_name(column.name()), Some(column));
        }
        assert_eq!(Column::from_name("targets"), None);
    }
}
