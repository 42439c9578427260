//! How the types that a row has become Parquet values, and back.

use crate::error::Wrong;
use crate::row::column::ColumnType;
use crate::row::words::{AbortedBy, TraceMethod, TraceScheme, TraceVersion};
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// A type that a field of [`Row`](crate::Row) has.
pub(crate) trait Cell: Clone {
    /// Parquet's physical type.
    type Physical: DataType;
    /// The same with its logical type.
    const TYPE: ColumnType;
    /// Whether there is a null.
    const IS_OPTIONAL: bool;

    /// The value; `None` is null.
    fn put(&self) -> Option<<Self::Physical as DataType>::T>;

    /// The value, or what is wrong with it; `None` is null.
    fn take(value: Option<&<Self::Physical as DataType>::T>) -> Result<Self, String>;
}

/// A value that is not null.
pub(crate) trait Value: Clone + Sized {
    type Physical: DataType;
    const TYPE: ColumnType;
    fn put(&self) -> <Self::Physical as DataType>::T;
    fn take(value: &<Self::Physical as DataType>::T) -> Result<Self, String>;
}

impl<V: Value> Cell for Option<V> {
    type Physical = V::Physical;
    const TYPE: ColumnType = V::TYPE;
    const IS_OPTIONAL: bool = true;

    fn put(&self) -> Option<<V::Physical as DataType>::T> {
        self.as_ref().map(Value::put)
    }

    fn take(value: Option<&<V::Physical as DataType>::T>) -> Result<Self, String> {
        value.map(V::take).transpose()
    }
}

/// Implements [`Cell`] for a type that is always there.
macro_rules! required_cells {
    ($($(#[$about:meta])* $name:ty: $physical:ty, $type:ident, $put:expr, $take:expr;)+) => { $(
        $(#[$about])*
        impl Cell for $name {
            type Physical = $physical;
            const TYPE: ColumnType = ColumnType::$type;
            const IS_OPTIONAL: bool = false;

            fn put(&self) -> Option<<Self::Physical as DataType>::T> {
                Some($put(*self))
            }

            fn take(value: Option<&<Self::Physical as DataType>::T>) -> Result<Self, String> {
                let null = || "is null, which it must not be".to_owned();
                value.map(|value| $take(*value)).ok_or_else(null)
            }
        }
    )+ };
}

required_cells! {
    /// The time of arrival: the only signed number that is always there.
    i64: Int64Type, Time, |number| number, |number| number;
    /// The target: the only unsigned number that is always there.
    u64: Int64Type, Uint64, u64::cast_signed, i64::cast_unsigned;
}

/// Implements [`Value`]: physical and logical type, to Parquet and back.
macro_rules! values {
    ($($name:ty: $physical:ty, $type:ident, $put:expr, $take:expr;)+) => { $(
        impl Value for $name {
            type Physical = $physical;
            const TYPE: ColumnType = ColumnType::$type;

            fn put(&self) -> <Self::Physical as DataType>::T {
                $put(self)
            }

            fn take(value: &<Self::Physical as DataType>::T) -> Result<Self, String> {
                $take(value)
            }
        }
    )+ };
}

values! {
    u64: Int64Type, Uint64, |number: &Self| number.cast_signed(), |value: &i64| Ok(value.cast_unsigned());
    i64: Int64Type, Int64, |number: &Self| *number, |value: &Self| Ok(*value);
    u32: Int32Type, Uint32, |number: &Self| number.cast_signed(), |value: &i32| Ok(value.cast_unsigned());
    u16: Int32Type, Uint16, |number: &Self| i32::from(*number), bits_16;
    bool: BoolType, Bool, |truth: &Self| *truth, |value: &Self| Ok(*value);
    String: ByteArrayType, Text, |text: &Self| ByteArray::from(text.as_bytes().to_vec()),
        |value: &ByteArray| text(value).map(str::to_owned);
}

fn bits_16(value: &i32) -> Result<u16, String> {
    u16::try_from(*value).map_err(|_| format!("is {value}, which does not fit 16 bits"))
}

fn text(value: &ByteArray) -> Result<&str, String> {
    str::from_utf8(value.data()).map_err(|error| format!("is not UTF-8: {error}"))
}

/// Implements [`Value`] for enums of words.
macro_rules! word_values {
    ($($name:ident)+) => { values! { $(
        $name: ByteArrayType, Text,
            |word: &Self| ByteArray::from(Bytes::from_static(word.as_str().as_bytes())),
            |value: &ByteArray| {
                let word = text(value)?;
                Self::from_word(word).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
                    format!("is `{word}`, not one of {}", known.join(", "))
                })
            };
    )+ } };
}

word_values!(TraceMethod TraceScheme TraceVersion AbortedBy);

/// A column chunk in memory, and what Parquet's footer says of it.
pub(crate) type EncodedColumn = (Bytes, ColumnCloseResult);

/// Values that are handed to Parquet at once: they are small together, and stay in the CPU's cache.
const ENCODE_ROWS: usize = 4096;

/// A column chunk of all these values.
pub(crate) fn encode<C: Cell>(
    cells: &[C],
    description: ColumnDescPtr,
    properties: WriterPropertiesPtr,
) -> Result<EncodedColumn, ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let writer = get_column_writer(description, properties, pages);
    let mut writer = get_typed_column_writer::<C::Physical>(writer);
    for cells in cells.chunks(ENCODE_ROWS) {
        let mut values = Vec::with_capacity(cells.len());
        let mut is_there = Vec::new();
        for cell in cells {
            let value = cell.put();
            if C::IS_OPTIONAL {
                is_there.push(i16::from(value.is_some()));
            }
            values.extend(value);
        }
        let is_there = C::IS_OPTIONAL.then_some(is_there.as_slice());
        writer.write_batch(&values, is_there, None)?;
    }
    let close = writer.close()?;
    Ok((Bytes::from(sink.into_inner()?), close))
}

/// A column chunk that is being read.
pub(crate) struct Source {
    reader: ColumnReader,
    /// Whether it has nulls: a foreign file may have them where ours has not.
    is_optional: bool,
    name: &'static str,
    /// Rows that were read before, in the whole file.
    row: u64,
}

impl Source {
    /// `row` is the number of the chunk's first row in the file, from 0.
    pub(crate) const fn new(
        reader: ColumnReader,
        is_optional: bool,
        name: &'static str,
        row: u64,
    ) -> Self {
        Self {
            reader,
            is_optional,
            name,
            row,
        }
    }
}

/// Replaces `cells` by the next `rows` of the column.
pub(crate) fn decode<C: Cell>(
    source: &mut Source,
    cells: &mut Vec<C>,
    rows: usize,
) -> Result<(), Wrong> {
    cells.clear();
    let mut values = Vec::with_capacity(rows);
    let mut is_there = Vec::new();
    let levels = source.is_optional.then_some(&mut is_there);
    let reader = typed::<C::Physical>(&mut source.reader)
        .ok_or_else(|| Wrong::damaged(format!("column `{}` is of another type", source.name)))?;
    let (found, _, _) = reader
        .read_records(rows, levels, None, &mut values)
        .map_err(|error| Wrong::damaged(format!("column `{}`: {error}", source.name)))?;
    if found != rows {
        let (name, end) = (source.name, source.row + found as u64);
        return Err(Wrong::damaged(format!(
            "column `{name}` ends after {end} rows, before the others"
        )));
    }
    let taken = if source.is_optional {
        let mut values = values.iter();
        let in_order = is_there.iter().map(|&level| match level {
            0 => C::take(None),
            _ => C::take(values.next()),
        });
        collect(cells, in_order)
    } else {
        collect(cells, values.iter().map(|value| C::take(Some(value))))
    };
    taken.map_err(|what| {
        let row = source.row + cells.len() as u64;
        Wrong::usage(
            format!("row {row} (from 0): `{}` {what}", source.name),
            "docs/trace.md says what each column holds",
        )
    })?;
    source.row += rows as u64;
    Ok(())
}

/// Up to the first that is wrong.
fn collect<C>(
    cells: &mut Vec<C>,
    taken: impl Iterator<Item = Result<C, String>>,
) -> Result<(), String> {
    for cell in taken {
        cells.push(cell?);
    }
    Ok(())
}

/// The reader as one of this type; `None` if it is of another.
fn typed<D: DataType>(reader: &mut ColumnReader) -> Option<&mut ColumnReaderImpl<D>> {
    use std::any::Any;
    let reader: &mut dyn Any = match reader {
        ColumnReader::BoolColumnReader(reader) => reader,
        ColumnReader::Int32ColumnReader(reader) => reader,
        ColumnReader::Int64ColumnReader(reader) => reader,
        ColumnReader::ByteArrayColumnReader(reader) => reader,
        _ => return None,
    };
    reader.downcast_mut()
}
