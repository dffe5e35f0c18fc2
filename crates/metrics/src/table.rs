//! Rows to parquet files and back: a [`Column`] is a name, a unit-bearing description and what it
//! reads and writes of a row; [`TableWriter`] writes rows in groups, so that memory stays bounded.
//!
//! Integers are signed 64-bit (a difference of two of them is then harmless in every reader),
//! reals are doubles. The descriptions are stored in the file's key-value metadata, under the
//! columns' names.

use std::borrow::Cow;
use std::fs::File;
use std::io;
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

use units::{Dur, Time};

use crate::sorted::take;
use crate::{Failure, FileError, Pack, Sorted, StagedFile};

/// Rows per row group: a few megabytes of buffer.
const ROWS_PER_GROUP: usize = 1 << 15;

/// A row of a table with fixed columns.
pub trait Row: Default + 'static {
    /// The columns, in file order.
    fn columns() -> Columns<Self>;
}

type Group<'a> = SerializedRowGroupWriter<'a, StagedFile>;
type PackCell<R> = Box<dyn Fn(&mut R, &mut Vec<u8>) -> io::Result<()> + Send + Sync>;
type UnpackCell<R> = Box<dyn Fn(&mut R, &mut &[u8]) -> io::Result<()> + Send + Sync>;
type Write<R> = Box<dyn Fn(&mut [R], &mut Group<'_>) -> Result<(), ParquetError> + Send + Sync>;
type Read<R> =
    Box<dyn Fn(&mut [R], &dyn RowGroupReader, usize) -> Result<(), ParquetError> + Send + Sync>;

/// A column of a table of `R`.
pub(crate) struct Column<R> {
    /// The name in the file; it ends in the unit, if there is one.
    pub(crate) name: Cow<'static, str>,
    /// A sentence on what it holds.
    pub(crate) about: &'static str,
    physical: Physical,
    nullable: bool,
    write: Write<R>,
    /// Fills this column of rows from a column of a group.
    read: Read<R>,
    /// The same cell by cell, packed, for a [`Sorter`](crate::Sorter); nothing if it is derived.
    pack: Option<(PackCell<R>, UnpackCell<R>)>,
}

impl<R> Column<R> {
    fn schema(&self) -> Result<Type, ParquetError> {
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let mut column = Type::primitive_type_builder(&self.name, self.physical);
        if self.physical == Physical::BYTE_ARRAY {
            column = column
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String));
        }
        column.with_repetition(repetition).build()
    }
}

/// The columns of a table of `R`, in file order.
pub struct Columns<R>(pub(crate) Vec<Column<R>>);

impl<R> Columns<R> {
    /// Append the cells of `row` to `out`.
    pub(crate) fn pack(&self, row: &mut R, out: &mut Vec<u8>) -> io::Result<()> {
        self.0.iter().filter_map(|c| c.pack.as_ref()).try_for_each(|(pack, _)| pack(row, out))
    }

    /// Take the cells of `row` from the front of `bytes`.
    pub(crate) fn unpack(&self, row: &mut R, bytes: &mut &[u8]) -> io::Result<()> {
        self.0.iter().filter_map(|c| c.pack.as_ref()).try_for_each(|(_, unpack)| unpack(row, bytes))
    }
}

impl<R: 'static> Columns<R> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// One more, of this name; `about` is a sentence on what it holds.
    pub(crate) fn column(self, name: impl Into<Cow<'static, str>>, about: &'static str) -> Next<R> {
        Next { before: self, name: name.into(), about }
    }
}

/// A column that has a name, and the columns before it.
pub(crate) struct Next<R> {
    before: Columns<R>,
    name: Cow<'static, str>,
    about: &'static str,
}

impl<R: 'static> Next<R> {
    /// It holds this field.
    pub(crate) fn field<V: Cell>(
        self,
        field: impl Fn(&mut R) -> &mut V + Copy + Send + Sync + 'static,
    ) -> Columns<R> {
        let read = move |rows: &mut [R], group: &dyn RowGroupReader, index: usize| {
            let cells = read_cells::<V::Stored>(group, index, rows.len())?;
            rows.iter_mut().zip(cells).try_for_each(|(row, cell)| {
                *field(row) = V::load(cell)?;
                Ok(())
            })
        };
        let pack = move |row: &mut R, out: &mut Vec<u8>| {
            pack_cell(field(row).store().map_err(io::Error::other)?, V::NULLABLE, out);
            Ok(())
        };
        let unpack = move |row: &mut R, bytes: &mut &[u8]| {
            *field(row) = V::load(unpack_cell(V::NULLABLE, bytes)?).map_err(io::Error::other)?;
            Ok(())
        };
        let packed = (Box::new(pack) as PackCell<R>, Box::new(unpack) as UnpackCell<R>);
        self.add::<V>(move |row| field(row).store(), Box::new(read), Some(packed))
    }

    /// It holds what follows from other columns, for readers of the file.
    pub(crate) fn derived<V: Cell>(
        self,
        get: impl Fn(&R) -> V + Send + Sync + 'static,
    ) -> Columns<R> {
        self.add::<V>(move |row| get(row).store(), Box::new(|_, _, _| Ok(())), None)
    }

    fn add<V: Cell>(
        self,
        store: impl Fn(&mut R) -> Result<Option<Stored<V>>, ParquetError> + Send + Sync + 'static,
        read: Read<R>,
        pack: Option<(PackCell<R>, UnpackCell<R>)>,
    ) -> Columns<R> {
        let Self { before: Columns(mut columns), name, about } = self;
        let write = move |rows: &mut [R], group: &mut Group<'_>| {
            write_cells::<V::Stored>(group, rows.iter_mut().map(&store), V::NULLABLE)
        };
        columns.push(Column {
            name,
            about,
            physical: V::Stored::get_physical_type(),
            nullable: V::NULLABLE,
            write: Box::new(write),
            read,
            pack,
        });
        Columns(columns)
    }
}

/// What a cell holds in a row.
pub(crate) trait Cell: Sized + 'static {
    /// What it is in the file.
    type Stored: DataType<T: Packed>;
    const NULLABLE: bool;
    fn store(&self) -> Result<Option<Stored<Self>>, ParquetError>;
    fn load(cell: Option<Stored<Self>>) -> Result<Self, ParquetError>;
}

type Stored<V> = <<V as Cell>::Stored as DataType>::T;

/// What a cell is in the file, packed.
pub(crate) trait Packed: Sized {
    fn pack(self, out: &mut Vec<u8>);
    fn unpack(bytes: &mut &[u8]) -> io::Result<Self>;
}

/// Seven bits a byte, the low ones first; the eighth says that there are more (LEB128).
impl Packed for i64 {
    fn pack(self, out: &mut Vec<u8>) {
        let mut left = self.cast_unsigned();
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        let mut n = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = take(bytes)?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n.cast_signed());
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

impl Packed for f64 {
    fn pack(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        take(bytes).map(Self::from_le_bytes)
    }
}

impl Packed for bool {
    fn pack(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        take(bytes).map(|[byte]| byte != 0)
    }
}

impl Packed for ByteArray {
    fn pack(self, out: &mut Vec<u8>) {
        (self.len() as i64).pack(out);
        out.extend(self.data());
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        let length = usize::try_from(i64::unpack(bytes)?).map_err(io::Error::other)?;
        let (front, rest) = bytes.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        *bytes = rest;
        Ok(front.to_vec().into())
    }
}

/// A cell that may be null says first whether it is.
fn pack_cell<T: Packed>(cell: Option<T>, nullable: bool, out: &mut Vec<u8>) {
    if nullable {
        cell.is_some().pack(out);
    }
    if let Some(cell) = cell {
        cell.pack(out);
    }
}

fn unpack_cell<T: Packed>(nullable: bool, bytes: &mut &[u8]) -> io::Result<Option<T>> {
    let present = !nullable || bool::unpack(bytes)?;
    present.then(|| T::unpack(bytes)).transpose()
}

/// A number without sign. One that does not fit can only come from another program.
pub(crate) trait Int: Copy + 'static {
    fn to_u64(self) -> u64;
    fn from_u64(n: u64) -> Self;
}

impl Int for u16 {
    fn to_u64(self) -> u64 {
        u64::from(self)
    }

    fn from_u64(n: u64) -> Self {
        Self::try_from(n).unwrap_or(Self::MAX)
    }
}

impl Int for u32 {
    fn to_u64(self) -> u64 {
        u64::from(self)
    }

    fn from_u64(n: u64) -> Self {
        Self::try_from(n).unwrap_or(Self::MAX)
    }
}

impl Int for u64 {
    fn to_u64(self) -> u64 {
        self
    }

    fn from_u64(n: u64) -> Self {
        n
    }
}

impl Int for Time {
    fn to_u64(self) -> u64 {
        self.0
    }

    fn from_u64(n: u64) -> Self {
        Self(n)
    }
}

impl Int for Dur {
    fn to_u64(self) -> u64 {
        self.0
    }

    fn from_u64(n: u64) -> Self {
        Self(n)
    }
}

impl<T: Int> Cell for T {
    type Stored = Int64Type;
    const NULLABLE: bool = false;

    fn store(&self) -> Result<Option<i64>, ParquetError> {
        signed(self.to_u64()).map(Some)
    }

    fn load(cell: Option<i64>) -> Result<Self, ParquetError> {
        Ok(Self::from_u64(unsigned(cell.ok_or_else(null)?)?))
    }
}

impl<T: Int> Cell for Option<T> {
    type Stored = Int64Type;
    const NULLABLE: bool = true;

    fn store(&self) -> Result<Option<i64>, ParquetError> {
        self.map(|n| signed(n.to_u64())).transpose()
    }

    fn load(cell: Option<i64>) -> Result<Self, ParquetError> {
        cell.map(|n| Ok(T::from_u64(unsigned(n)?))).transpose()
    }
}

impl Cell for Option<f64> {
    type Stored = DoubleType;
    const NULLABLE: bool = true;

    fn store(&self) -> Result<Self, ParquetError> {
        Ok(*self)
    }

    fn load(cell: Self) -> Result<Self, ParquetError> {
        Ok(cell)
    }
}

/// A real is null in no file of ours.
impl Cell for f64 {
    type Stored = DoubleType;
    const NULLABLE: bool = true;

    fn store(&self) -> Result<Option<Self>, ParquetError> {
        Ok(Some(*self))
    }

    fn load(cell: Option<Self>) -> Result<Self, ParquetError> {
        Ok(cell.unwrap_or_default())
    }
}

impl Cell for bool {
    type Stored = BoolType;
    const NULLABLE: bool = false;

    fn store(&self) -> Result<Option<Self>, ParquetError> {
        Ok(Some(*self))
    }

    fn load(cell: Option<Self>) -> Result<Self, ParquetError> {
        cell.ok_or_else(null)
    }
}

impl Cell for String {
    type Stored = ByteArrayType;
    const NULLABLE: bool = false;

    fn store(&self) -> Result<Option<ByteArray>, ParquetError> {
        Ok(Some(self.as_str().into()))
    }

    fn load(cell: Option<ByteArray>) -> Result<Self, ParquetError> {
        text(&cell.ok_or_else(null)?)
    }
}

impl Cell for Option<String> {
    type Stored = ByteArrayType;
    const NULLABLE: bool = true;

    fn store(&self) -> Result<Option<ByteArray>, ParquetError> {
        Ok(self.as_deref().map(ByteArray::from))
    }

    fn load(cell: Option<ByteArray>) -> Result<Self, ParquetError> {
        cell.as_ref().map(text).transpose()
    }
}

impl Cell for Option<Failure> {
    type Stored = ByteArrayType;
    const NULLABLE: bool = true;

    fn store(&self) -> Result<Option<ByteArray>, ParquetError> {
        Ok(self.map(|failure| failure.name().into()))
    }

    fn load(cell: Option<ByteArray>) -> Result<Self, ParquetError> {
        let name = cell.as_ref().map(text).transpose()?;
        Ok(Failure::ALL.into_iter().find(|failure| Some(failure.name()) == name.as_deref()))
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
fn write_cells<T: DataType>(
    group: &mut Group<'_>,
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
        Columns(columns): Columns<R>,
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
                (column.write)(&mut self.buffer, &mut group)?;
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

/// Writes a table of these rows.
pub(crate) fn write_table<R: Row>(
    file: StagedFile,
    rows: impl IntoIterator<Item = R>,
) -> Result<(), FileError> {
    let mut table = TableWriter::new(file)?;
    rows.into_iter().try_for_each(|row| table.push(row))?;
    table.finish()
}

/// The same of rows that may be in a file.
pub(crate) fn write_sorted<R: Row + Pack>(
    file: StagedFile,
    rows: &Sorted<R>,
) -> Result<(), FileError> {
    let mut table = TableWriter::new(file)?;
    rows.iter()?.try_for_each(|row| table.push(row?))?;
    table.finish()
}

/// All rows of a table.
pub(crate) fn read_table<R: Row>(path: &Path) -> Result<Vec<R>, FileError> {
    read_rows(path, |_| R::columns(), R::default)
}

/// All rows of a table whose columns depend on the names that the file has.
pub(crate) fn read_rows<R>(
    path: &Path,
    columns: impl FnOnce(&[String]) -> Columns<R>,
    blank: impl Fn() -> R,
) -> Result<Vec<R>, FileError> {
    let mut rows: Vec<R> = Vec::new();
    guarded(path, || {
        read_groups(path, columns, blank, |group| {
            rows.append(group);
            Ok(())
        })
    })?;
    Ok(rows)
}

/// Hands the rows of a table to `each`, a group at a time.
pub(crate) fn read_each<R: Row>(
    path: &Path,
    mut each: impl FnMut(&[R]) -> Result<(), FileError>,
) -> Result<(), FileError> {
    guarded(path, || read_groups(path, |_| R::columns(), R::default, |group| each(group)))
}

/// The library checks a damaged page with assertions, so what it says of one is a panic.
fn guarded(path: &Path, read: impl FnOnce() -> Result<(), FileError>) -> Result<(), FileError> {
    std::panic::catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(FileError::parquet("read", path, &damaged())))
}

fn read_groups<R>(
    path: &Path,
    columns: impl FnOnce(&[String]) -> Columns<R>,
    blank: impl Fn() -> R,
    mut each: impl FnMut(&mut Vec<R>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let file = File::open(path).map_err(|e| FileError::io("read", path, &e))?;
    let broken = |e: ParquetError| FileError::parquet("read", path, &e);
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|c| c.name().to_owned()).collect();
    let mut wanted = Vec::new();
    for column in columns(&names).0 {
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
            (column.read)(&mut rows, group.as_ref(), *index).map_err(broken)?;
        }
        each(&mut rows)?;
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
