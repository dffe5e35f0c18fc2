//! Rows to parquet files and back: a [`Column`] is a name, a unit-bearing description and a pair
//! of accessors; [`TableWriter`] writes rows in groups, so that memory stays bounded.
//!
//! Integers are signed 64-bit (a difference of two of them is then harmless in every reader),
//! reals are doubles. The descriptions are stored in the file's key-value metadata, under the
//! columns' names.

use std::borrow::Cow;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::{FileError, StagedFile};

/// Rows per row group: a few megabytes of buffer.
const ROWS_PER_GROUP: usize = 1 << 15;

/// A row of a table with fixed columns.
pub trait Row: Default + 'static {
    /// The columns, in file order.
    fn columns() -> Vec<Column<Self>>;
}

type Get<R, V> = Box<dyn Fn(&R) -> V + Send>;
type Set<R, V> = Box<dyn Fn(&mut R, V) + Send>;

enum Access<R> {
    Int(Get<R, u64>, Set<R, u64>),
    MaybeInt(Get<R, Option<u64>>, Set<R, Option<u64>>),
    MaybeReal(Get<R, Option<f64>>, Set<R, Option<f64>>),
    Flag(Get<R, bool>, Set<R, bool>),
    Text(Get<R, String>, Set<R, String>),
    MaybeText(Get<R, Option<&'static str>>, Set<R, Option<String>>),
}

/// A column of a table of `R`.
pub struct Column<R> {
    name: Cow<'static, str>,
    about: &'static str,
    access: Access<R>,
}

impl<R> Column<R> {
    /// The name in the file; it ends in the unit, if there is one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A sentence on what it holds.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.about
    }

    pub(crate) fn int(
        name: &'static str,
        about: &'static str,
        get: impl Fn(&R) -> u64 + Send + 'static,
        set: impl Fn(&mut R, u64) + Send + 'static,
    ) -> Self {
        let access = Access::Int(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    pub(crate) fn maybe_int(
        name: &'static str,
        about: &'static str,
        get: impl Fn(&R) -> Option<u64> + Send + 'static,
        set: impl Fn(&mut R, Option<u64>) + Send + 'static,
    ) -> Self {
        let access = Access::MaybeInt(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    pub(crate) fn maybe_real(
        name: impl Into<Cow<'static, str>>,
        about: &'static str,
        get: impl Fn(&R) -> Option<f64> + Send + 'static,
        set: impl Fn(&mut R, Option<f64>) + Send + 'static,
    ) -> Self {
        let access = Access::MaybeReal(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    pub(crate) fn flag(
        name: &'static str,
        about: &'static str,
        get: impl Fn(&R) -> bool + Send + 'static,
        set: impl Fn(&mut R, bool) + Send + 'static,
    ) -> Self {
        let access = Access::Flag(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    pub(crate) fn text(
        name: &'static str,
        about: &'static str,
        get: impl Fn(&R) -> String + Send + 'static,
        set: impl Fn(&mut R, String) + Send + 'static,
    ) -> Self {
        let access = Access::Text(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    pub(crate) fn maybe_text(
        name: &'static str,
        about: &'static str,
        get: impl Fn(&R) -> Option<&'static str> + Send + 'static,
        set: impl Fn(&mut R, Option<String>) + Send + 'static,
    ) -> Self {
        let access = Access::MaybeText(Box::new(get), Box::new(set));
        Self { name: name.into(), about, access }
    }

    fn schema(&self) -> Result<Type, ParquetError> {
        let (physical, nullable) = match self.access {
            Access::Int(..) => (Physical::INT64, false),
            Access::MaybeInt(..) => (Physical::INT64, true),
            Access::MaybeReal(..) => (Physical::DOUBLE, true),
            Access::Flag(..) => (Physical::BOOLEAN, false),
            Access::Text(..) => (Physical::BYTE_ARRAY, false),
            Access::MaybeText(..) => (Physical::BYTE_ARRAY, true),
        };
        let repetition = if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let mut column = Type::primitive_type_builder(&self.name, physical);
        if physical == Physical::BYTE_ARRAY {
            column = column
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String));
        }
        column.with_repetition(repetition).build()
    }

    fn write<W: std::io::Write + Send>(
        &self,
        rows: &[R],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match &self.access {
            Access::Int(get, _) => {
                let cells = rows.iter().map(|r| signed(get(r)).map(Some));
                write_cells::<Int64Type, W>(group, cells, false)
            }
            Access::MaybeInt(get, _) => {
                let cells = rows.iter().map(|r| get(r).map(signed).transpose());
                write_cells::<Int64Type, W>(group, cells, true)
            }
            Access::MaybeReal(get, _) => {
                write_cells::<DoubleType, W>(group, rows.iter().map(|r| Ok(get(r))), true)
            }
            Access::Flag(get, _) => {
                write_cells::<BoolType, W>(group, rows.iter().map(|r| Ok(Some(get(r)))), false)
            }
            Access::Text(get, _) => {
                let cells = rows.iter().map(|r| Ok(Some(ByteArray::from(get(r).into_bytes()))));
                write_cells::<ByteArrayType, W>(group, cells, false)
            }
            Access::MaybeText(get, _) => {
                let cells = rows.iter().map(|r| Ok(get(r).map(ByteArray::from)));
                write_cells::<ByteArrayType, W>(group, cells, true)
            }
        }
    }

    /// Fills this column of `rows` from column `index` of the group.
    fn read(
        &self,
        rows: &mut [R],
        group: &dyn RowGroupReader,
        index: usize,
    ) -> Result<(), ParquetError> {
        match &self.access {
            Access::Int(_, set) => fill::<Int64Type, R>(rows, group, index, |row, cell| {
                set(row, unsigned(cell.ok_or_else(null)?)?);
                Ok(())
            }),
            Access::MaybeInt(_, set) => fill::<Int64Type, R>(rows, group, index, |row, cell| {
                set(row, cell.map(unsigned).transpose()?);
                Ok(())
            }),
            Access::MaybeReal(_, set) => fill::<DoubleType, R>(rows, group, index, |row, cell| {
                set(row, cell);
                Ok(())
            }),
            Access::Flag(_, set) => fill::<BoolType, R>(rows, group, index, |row, cell| {
                set(row, cell.ok_or_else(null)?);
                Ok(())
            }),
            Access::Text(_, set) => fill::<ByteArrayType, R>(rows, group, index, |row, cell| {
                let bytes = cell.ok_or_else(null)?;
                set(row, text(&bytes)?);
                Ok(())
            }),
            Access::MaybeText(_, set) => {
                fill::<ByteArrayType, R>(rows, group, index, |row, cell| {
                    set(row, cell.as_ref().map(text).transpose()?);
                    Ok(())
                })
            }
        }
    }
}

fn text(bytes: &ByteArray) -> Result<String, ParquetError> {
    Ok(std::str::from_utf8(bytes.data())?.to_owned())
}

fn null() -> ParquetError {
    ParquetError::General("an empty cell where a value is needed".to_owned())
}

fn signed(n: u64) -> Result<i64, ParquetError> {
    i64::try_from(n).map_err(|_| ParquetError::General(format!("{n} does not fit a column")))
}

fn unsigned(n: i64) -> Result<u64, ParquetError> {
    u64::try_from(n).map_err(|_| ParquetError::General(format!("{n} where none is below zero")))
}

/// Writes the next column of `group`.
fn write_cells<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Result<Option<T::T>, ParquetError>>,
    nullable: bool,
) -> Result<(), ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    for cell in cells {
        let cell = cell?;
        present.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let too_many = || ParquetError::General("more columns than the schema has".to_owned());
    let mut column = group.next_column()?.ok_or_else(too_many)?;
    column.typed::<T>().write_batch(&values, nullable.then_some(&present[..]), None)?;
    column.close()
}

/// Gives each row its cell of column `index`.
fn fill<T: DataType, R>(
    rows: &mut [R],
    group: &dyn RowGroupReader,
    index: usize,
    set: impl Fn(&mut R, Option<T::T>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let cells = read_cells::<T>(group, index, rows.len())?;
    rows.iter_mut().zip(cells).try_for_each(|(row, cell)| set(row, cell))
}

/// Reads column `index` of a group that has `rows` rows.
fn read_cells<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let mut column = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let (mut done, mut last) = (0, 1);
    while done < rows && last > 0 {
        (last, _, _) = column.read_records(rows - done, Some(&mut present), None, &mut values)?;
        done += last;
    }
    if done != rows {
        return Err(ParquetError::General(format!("{done} of {rows} rows are there")));
    }
    if present.is_empty() {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(present.iter().map(|&level| if level > 0 { values.next() } else { None }).collect())
}

/// Writes rows to a parquet file. [`finish`](Self::finish) completes it.
pub struct TableWriter<R> {
    columns: Vec<Column<R>>,
    path: PathBuf,
    file: SerializedFileWriter<StagedFile>,
    buffer: Vec<R>,
}

impl<R: Row> TableWriter<R> {
    /// A table in `file`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(file: StagedFile) -> Result<Self, FileError> {
        Self::with_columns(file, R::columns())
    }
}

impl<R> TableWriter<R> {
    pub(crate) fn with_columns(
        file: StagedFile,
        columns: Vec<Column<R>>,
    ) -> Result<Self, FileError> {
        let path = file.path().to_owned();
        let file = open(file, &columns).map_err(|e| FileError::parquet("write", &path, &e))?;
        Ok(Self { columns, path, file, buffer: Vec::new() })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The file cannot be written, or an integer is above 2^63 - 1.
    pub fn push(&mut self, row: R) -> Result<(), FileError> {
        self.buffer.push(row);
        if self.buffer.len() == ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes what is left and completes the file.
    ///
    /// # Errors
    /// The file cannot be written, or an integer is above 2^63 - 1.
    pub fn finish(mut self) -> Result<(), FileError> {
        if !self.buffer.is_empty() {
            self.write_group()?;
        }
        let file = self.file.into_inner();
        file.map_err(|e| FileError::parquet("write", &self.path, &e))?.finish()
    }

    fn write_group(&mut self) -> Result<(), FileError> {
        let mut write = || {
            let mut group = self.file.next_row_group()?;
            for column in &self.columns {
                column.write(&self.buffer, &mut group)?;
            }
            group.close()
        };
        write().map_err(|e| FileError::parquet("write", &self.path, &e))?;
        self.buffer.clear();
        Ok(())
    }
}

fn open<R>(
    file: StagedFile,
    columns: &[Column<R>],
) -> Result<SerializedFileWriter<StagedFile>, ParquetError> {
    let fields: Result<_, ParquetError> =
        columns.iter().map(|c| Ok(Arc::new(c.schema()?))).collect();
    let schema = Type::group_type_builder("trimline").with_fields(fields?).build()?;
    let about = columns
        .iter()
        .map(|c| KeyValue::new(c.name.clone().into_owned(), c.about.to_owned()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about))
        .build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

/// All rows of a table.
pub(crate) fn read_table<R: Row>(path: &Path) -> Result<Vec<R>, FileError> {
    read_rows(path, |_| R::columns(), R::default)
}

/// All rows of a table whose columns depend on the names that the file has.
pub(crate) fn read_rows<R>(
    path: &Path,
    columns: impl FnOnce(&[String]) -> Vec<Column<R>>,
    blank: impl Fn() -> R,
) -> Result<Vec<R>, FileError> {
    let mut rows: Vec<R> = Vec::new();
    guarded(path, || read_groups(path, columns, blank, |group| rows.append(group)))?;
    Ok(rows)
}

/// Hands the rows of a table to `each`, a group at a time.
pub(crate) fn read_each<R: Row>(path: &Path, mut each: impl FnMut(&[R])) -> Result<(), FileError> {
    guarded(path, || read_groups(path, |_| R::columns(), R::default, |group| each(group)))
}

/// The library checks a damaged page with assertions, so what it says of one is a panic.
fn guarded(path: &Path, read: impl FnOnce() -> Result<(), FileError>) -> Result<(), FileError> {
    std::panic::catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(FileError::parquet("read", path, &damaged())))
}

fn read_groups<R>(
    path: &Path,
    columns: impl FnOnce(&[String]) -> Vec<Column<R>>,
    blank: impl Fn() -> R,
    mut each: impl FnMut(&mut Vec<R>),
) -> Result<(), FileError> {
    let file = File::open(path).map_err(|e| FileError::io("read", path, &e))?;
    let broken = |e: ParquetError| FileError::parquet("read", path, &e);
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|c| c.name().to_owned()).collect();
    let mut wanted = Vec::new();
    for column in columns(&names) {
        let index = names.iter().position(|name| *name == column.name);
        let index = index.filter(|&i| {
            let same = |t: Type| t.get_physical_type() == schema.column(i).physical_type();
            column.schema().is_ok_and(same)
        });
        let missing = || {
            let cause = format!("it has no column {:?} of the right type", column.name);
            FileError::new("read", path, cause, "run the scenario again with this version")
        };
        wanted.push((index.ok_or_else(missing)?, column));
    }
    let mut rows: Vec<R> = Vec::new();
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i).map_err(broken)?;
        let count = usize::try_from(group.metadata().num_rows()).ok();
        let count = count.filter(|n| *n <= ROWS_PER_GROUP).ok_or_else(|| broken(damaged()))?;
        rows.clear();
        rows.extend((0..count).map(|_| blank()));
        for (index, column) in &wanted {
            column.read(&mut rows, group.as_ref(), *index).map_err(broken)?;
        }
        each(&mut rows);
    }
    Ok(())
}

fn damaged() -> ParquetError {
    ParquetError::General("the file is damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkRow, OutputDir, QueueRow, read_flows, read_links, read_queues, write_links};

    fn links(dir: &Path) -> PathBuf {
        let out = OutputDir::create(dir).unwrap();
        write_links(out.file("links.parquet").unwrap(), [LinkRow::default()]).unwrap();
        out.commit().unwrap();
        dir.join("links.parquet")
    }

    #[test]
    fn a_missing_column_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = read_flows(&links(dir.path())).unwrap_err();
        assert_eq!(error.cause, "it has no column \"src\" of the right type");
        assert!(error.to_string().contains("links.parquet"), "{error}");
    }

    #[test]
    fn a_cut_off_file_is_an_error_at_every_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = links(dir.path());
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = read_links(&path).unwrap_err();
            assert_eq!((error.action, &error.path), ("read", &path), "{length} bytes: {error}");
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_other_values_but_no_panic() {
        let dir = tempfile::tempdir().unwrap();
        let path = links(dir.path());
        let whole = std::fs::read(&path).unwrap();
        // Every seventh byte, every bit in turn: some of it fails only an assertion of the library.
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, damaged).unwrap();
            if let Err(error) = read_links(&path) {
                assert_eq!(error.path, path);
            }
        }
    }

    #[test]
    fn an_integer_beyond_the_column_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let mut table = TableWriter::new(out.file("queues.parquet").unwrap()).unwrap();
        table.push(QueueRow { bytes: u64::MAX, ..QueueRow::default() }).unwrap();
        let error = table.finish().unwrap_err();
        assert!(error.cause.contains("18446744073709551615 does not fit"), "{error}");
    }

    #[test]
    fn an_empty_table_reads_back_empty() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let file = out.file("queues.parquet").unwrap();
        TableWriter::<QueueRow>::new(file).unwrap().finish().unwrap();
        assert_eq!(read_queues(&out.staged().join("queues.parquet")).unwrap(), []);
    }
}
