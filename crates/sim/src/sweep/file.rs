//! The file of a sweep: Parquet, a row a run, replaced whole.
//!
//! ```sql
//! select size, policy, hit_ratio from 'sweep.parquet' where admission = 'always' order by capacity_bytes, policy
//! ```
//!
//! Columns of words come first: what the sweep is about, then its axes; then figures. The words of
//! a row are its name: rows of another trace may lie in the same file, if they have the same
//! columns. Rows are in the order of their words, so that the file does not depend on which run
//! ended first.

use super::grid::Point;
use super::job::{Figure, Figures};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_workload::output::{self, OutputFile};

/// The runs of a file.
#[derive(Debug)]
pub struct Runs {
    path: PathBuf,
    about: Vec<(String, String)>,
    axes: Vec<String>,
    /// By the words of a row, in the order of the columns.
    rows: BTreeMap<Vec<String>, Vec<Figure>>,
    /// Names of the figures; none before the first run.
    figures: Vec<String>,
    is_changed: bool,
    written: Instant,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// What could not be done, with the name of the file.
    pub what: String,
    /// Why.
    pub cause: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the outside failed, and not the usage.
    pub is_outside: bool,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for FileError {}

/// In the file's metadata.
const FORMAT: (&str, &str) = ("weir.format", "weir-sweep");
const VERSION: (&str, &str) = ("weir.version", "1");

impl Runs {
    /// What is in the file at `path`, which need not exist.
    ///
    /// # Errors
    /// The file cannot be read, is no file of a sweep, or has other columns.
    pub fn open(
        path: &Path,
        axes: &[String],
        about: &BTreeMap<String, String>,
    ) -> Result<Self, FileError> {
        let mut runs = Self {
            path: path.to_owned(),
            about: about
                .iter()
                .map(|(name, word)| (name.clone(), word.clone()))
                .collect(),
            axes: axes.to_vec(),
            rows: BTreeMap::new(),
            figures: Vec::new(),
            is_changed: false,
            written: Instant::now(),
        };
        let replaced = output::replaceable(path).map_err(|error| runs.outside("write", &error))?;
        let Some(replaced) = replaced else {
            return Err(FileError {
                hint: Some("name a regular file by --out".to_owned()),
                ..runs.unusable(
                    "it is a device or a fifo, and a sweep reads its file to go on".to_owned(),
                )
            });
        };
        output::try_path(&replaced).map_err(|error| FileError {
            hint: output::hint(path, &error),
            ..runs.outside("write", &error)
        })?;
        match File::open(&replaced) {
            Ok(file) => runs.read(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(runs.outside("read", &error)),
        }
        Ok(runs)
    }

    /// How many runs the file has, of this sweep and of others.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the run of a point is there.
    #[must_use]
    pub fn has(&self, point: &Point) -> bool {
        self.rows.contains_key(&self.words(point))
    }

    /// The figure of a run, if both are there.
    #[must_use]
    pub fn figure(&self, point: &Point, name: &str) -> Option<Figure> {
        let place = self.figures.iter().position(|figure| figure == name)?;
        self.rows.get(&self.words(point))?.get(place).copied()
    }

    /// Adds a run; [`Self::write_if_older`] keeps it.
    ///
    /// # Errors
    /// Its figures are not those of the other runs.
    pub fn add(&mut self, point: Point, figures: Figures) -> Result<(), FileError> {
        let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
        if self.figures.is_empty() {
            self.figures = names.into_iter().map(str::to_owned).collect();
        } else if self.figures != names {
            return Err(self.other_columns());
        }
        let values = figures.into_iter().map(|(_, value)| value).collect();
        self.rows.insert(self.words(&point), values);
        self.is_changed = true;
        Ok(())
    }

    /// Writes the file if it was written longer ago than that, and if there is something new.
    ///
    /// # Errors
    /// It cannot be written; what was there before still is.
    pub fn write_if_older(&mut self, age: Duration) -> Result<(), FileError> {
        if !self.is_changed || self.written.elapsed() < age {
            return Ok(());
        }
        self.write()
            .map_err(|error| self.outside("write", &error))?;
        self.is_changed = false;
        self.written = Instant::now();
        Ok(())
    }

    fn words(&self, point: &Point) -> Vec<String> {
        let about = self.about.iter().map(|(_, word)| word.clone());
        let axes = self.axes.iter().map(|axis| point.get(axis).cloned());
        about.chain(axes.map(Option::unwrap_or_default)).collect()
    }

    fn word_columns(&self) -> Vec<&str> {
        let about = self.about.iter().map(|(name, _)| name.as_str());
        about.chain(self.axes.iter().map(String::as_str)).collect()
    }

    fn read(&mut self, file: File) -> Result<(), FileError> {
        let failed = |error: ParquetError| self.outside("read", &error);
        let reader = SerializedFileReader::new(file).map_err(failed)?;
        let metadata = reader.metadata().file_metadata();
        let has = |(key, value): (&str, &str)| {
            let all = metadata.key_value_metadata().into_iter().flatten();
            all.into_iter()
                .any(|entry| entry.key == key && entry.value.as_deref() == Some(value))
        };
        if !has(FORMAT) || !has(VERSION) {
            return Err(self.unusable("it is not the file of a sweep".to_owned()));
        }
        let schema = metadata.schema_descr();
        let columns: Vec<String> = schema
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let words = self.word_columns().len();
        let Some((names, figures)) = columns.split_at_checked(words) else {
            return Err(self.other_columns());
        };
        if names != self.word_columns() {
            return Err(self.other_columns());
        }
        let mut rows = BTreeMap::new();
        for row in reader.get_row_iter(None).map_err(failed)? {
            let row = row.map_err(failed)?;
            let (words, values) = taken_apart(&row, words).ok_or_else(|| self.other_columns())?;
            rows.insert(words, values);
        }
        self.figures = figures.to_vec();
        self.rows = rows;
        Ok(())
    }

    fn write(&self) -> Result<(), ParquetError> {
        output::make_parent(&self.path)?;
        let output = OutputFile::create(&self.path)?;
        let about =
            [FORMAT, VERSION].map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(about.to_vec()))
            .set_created_by("weir sim sweep".into())
            .build();
        let schema = Arc::new(parse_message_type(&self.schema())?);
        let mut writer = SerializedFileWriter::new(output.file()?, schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for index in 0..self.word_columns().len() {
            let words = self
                .rows
                .keys()
                .map(|words| ByteArray::from(words[index].as_str()));
            column::<ByteArrayType>(&mut group, words.collect())?;
        }
        for index in 0..self.figures.len() {
            let values: Vec<Figure> = self.rows.values().map(|values| values[index]).collect();
            figures(&mut group, &values)?;
        }
        group.close()?;
        writer.close()?;
        Ok(output.commit()?)
    }

    fn schema(&self) -> String {
        let words = self.word_columns().into_iter();
        let words = words.map(|name| format!("  required binary {name} (string);\n"));
        let first = self.rows.values().next().cloned().unwrap_or_default();
        let figures = self
            .figures
            .iter()
            .zip(first)
            .map(|(name, figure)| match figure {
                Figure::Whole(_) => format!("  required int64 {name} (integer(64, false));\n"),
                Figure::Real(_) => format!("  required double {name};\n"),
            });
        let columns: String = words.chain(figures).collect();
        format!("message weir_sweep {{\n{columns}}}\n")
    }

    fn other_columns(&self) -> FileError {
        self.unusable("it has other columns than this sweep".to_owned())
    }

    fn unusable(&self, cause: String) -> FileError {
        FileError {
            what: format!("cannot go on with `{}`", self.path.display()),
            cause,
            hint: Some("name another file by `--out`, or remove this one".to_owned()),
            is_outside: false,
        }
    }

    fn outside(&self, verb: &str, cause: &impl fmt::Display) -> FileError {
        FileError {
            what: format!("cannot {verb} `{}`", self.path.display()),
            cause: cause.to_string(),
            hint: None,
            is_outside: true,
        }
    }
}

fn taken_apart(row: &Row, word_count: usize) -> Option<(Vec<String>, Vec<Figure>)> {
    let (mut words, mut values) = (Vec::new(), Vec::new());
    for (index, (_, field)) in row.get_column_iter().enumerate() {
        match field {
            Field::Str(word) if index < word_count => words.push(word.clone()),
            Field::ULong(value) if index >= word_count => values.push(Figure::Whole(*value)),
            Field::Double(value) if index >= word_count => values.push(Figure::Real(*value)),
            _ => return None,
        }
    }
    Some((words, values))
}

type Group<'g> = SerializedRowGroupWriter<'g, File>;

fn figures(group: &mut Group<'_>, values: &[Figure]) -> Result<(), ParquetError> {
    if let Some(Figure::Real(_)) = values.first() {
        let reals = values.iter().map(|value| match value {
            Figure::Real(real) => *real,
            Figure::Whole(_) => f64::NAN,
        });
        return column::<DoubleType>(group, reals.collect());
    }
    let wholes = values.iter().map(|value| match value {
        Figure::Whole(whole) => whole.cast_signed(),
        Figure::Real(_) => -1,
    });
    column::<Int64Type>(group, wholes.collect())
}

fn column<D: DataType>(group: &mut Group<'_>, values: Vec<D::T>) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".to_owned()));
    };
    column.typed::<D>().write_batch(&values, None, None)?;
    column.close()
}
