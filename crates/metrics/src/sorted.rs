//! [`Sorted`]: items in order, however many there are.
//!
//! A [`Sorter`] takes them in any order. With a directory to write to, it holds at most [`HELD`] of
//! them: more are sorted and written, packed, to a file without a name, a run at a time. Reading
//! merges the runs. So memory does not grow with the number of items, and nothing is rounded: what
//! is worked out from them is the same, wherever they are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::slice;

use crate::FileError;
use crate::table::Packed;

/// The most items that a sorter holds: 18 MB of messages, 1 MB of numbers.
const HELD: usize = 1 << 17;

/// How much of a run is read at once, bytes.
const CHUNK: usize = 1 << 13;

/// What can be written to a run and read back.
pub trait Pack: Copy {
    /// By which it is sorted.
    type Key: Ord;

    /// Its place in the order.
    fn key(&self) -> Self::Key;

    /// Append it to `out`.
    ///
    /// # Errors
    /// A value that does not fit.
    fn pack(&self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Take one from the front of `bytes`.
    ///
    /// # Errors
    /// The bytes are not those of one.
    fn unpack(bytes: &mut &[u8]) -> io::Result<Self>;
}

/// Numbers, by [`f64::total_cmp`].
impl Pack for f64 {
    type Key = i64;

    fn key(&self) -> i64 {
        let bits = self.to_bits().cast_signed();
        bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
    }

    fn pack(&self, out: &mut Vec<u8>) -> io::Result<()> {
        Packed::pack(*self, out);
        Ok(())
    }

    fn unpack(bytes: &mut &[u8]) -> io::Result<Self> {
        Packed::unpack(bytes)
    }
}

/// `N` bytes from the front of `bytes`.
///
/// # Errors
/// There are fewer.
pub fn take<const N: usize>(bytes: &mut &[u8]) -> io::Result<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    *bytes = rest;
    Ok(*front)
}

/// Takes items in any order.
#[derive(Debug)]
pub struct Sorter<T> {
    held: Vec<T>,
    /// Where it may write; `None`: it holds all.
    dir: Option<PathBuf>,
    runs: Option<Runs>,
}

impl<T: Pack> Sorter<T> {
    /// An empty one. It writes to `dir` once there are many items, and never without.
    #[must_use]
    pub fn new(dir: Option<&Path>) -> Self {
        Self { held: Vec::new(), dir: dir.map(Path::to_owned), runs: None }
    }

    /// One more item.
    ///
    /// # Errors
    /// The items cannot be written.
    pub fn push(&mut self, item: T) -> Result<(), FileError> {
        self.held.push(item);
        match &self.dir {
            Some(_) if self.held.len() == HELD => self.write_run(),
            _ => Ok(()),
        }
    }

    /// All items, in order.
    ///
    /// # Errors
    /// The items cannot be written.
    pub fn sort(mut self) -> Result<Sorted<T>, FileError> {
        if self.runs.is_none() {
            self.held.sort_unstable_by_key(T::key);
            return Ok(Sorted::Held(self.held));
        }
        if !self.held.is_empty() {
            self.write_run()?;
        }
        Ok(self.runs.map_or(Sorted::Held(Vec::new()), Sorted::Written))
    }

    fn write_run(&mut self) -> Result<(), FileError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let failed = |e: io::Error| FileError::io("write to", dir, &e);
        self.held.sort_unstable_by_key(T::key);
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::new(dir).map_err(failed)?),
        };
        runs.write(&self.held).map_err(failed)?;
        self.held.clear();
        Ok(())
    }
}

/// A file of sorted runs, which goes when it is closed. An item is its length, one byte, and that
/// many bytes.
#[derive(Debug)]
pub struct Runs {
    dir: PathBuf,
    file: File,
    /// Where each is, ascending.
    places: Vec<Range<u64>>,
    items: u64,
}

impl Runs {
    fn new(dir: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(dir)?;
        Ok(Self { dir: dir.to_owned(), file, places: Vec::new(), items: 0 })
    }

    /// Write one more run.
    fn write<T: Pack>(&mut self, sorted: &[T]) -> io::Result<()> {
        let (mut bytes, start) = (Vec::new(), self.places.last().map_or(0, |run| run.end));
        let mut end = self.file.seek(SeekFrom::Start(start))?;
        for item in sorted {
            let at = bytes.len();
            bytes.push(0);
            item.pack(&mut bytes)?;
            let length = u8::try_from(bytes.len() - at - 1).map_err(io::Error::other)?;
            bytes[at] = length;
            if bytes.len() > CHUNK {
                self.file.write_all(&bytes)?;
                end += bytes.len() as u64;
                bytes.clear();
            }
        }
        self.file.write_all(&bytes)?;
        self.places.push(start..end + bytes.len() as u64);
        self.items += sorted.len() as u64;
        Ok(())
    }
}

/// Items in order.
#[derive(Debug)]
pub enum Sorted<T> {
    /// In memory.
    Held(Vec<T>),
    /// In a file.
    Written(Runs),
}

impl<T: Pack> Sorted<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Held(items) => items.len() as u64,
            Self::Written(runs) => runs.items,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn iter(&self) -> Result<Items<'_, T>, FileError> {
        match self {
            Self::Held(items) => Ok(Items::Held(items.iter())),
            Self::Written(runs) => Ok(Items::Merged(Merge::new(runs)?)),
        }
    }

    /// The same items after `change`, which sees them in order and leaves it as it is.
    ///
    /// # Errors
    /// That of `change`; or the file cannot be read, or another one not written.
    pub fn update(
        self,
        mut change: impl FnMut(&mut T) -> Result<(), FileError>,
    ) -> Result<Self, FileError> {
        match self {
            Self::Held(mut items) => {
                items.iter_mut().try_for_each(change)?;
                Ok(Self::Held(items))
            }
            Self::Written(ref runs) => {
                let mut changed = Sorter::new(Some(&runs.dir));
                for item in self.iter()? {
                    let mut item = item?;
                    change(&mut item)?;
                    changed.push(item)?;
                }
                changed.sort()
            }
        }
    }

    /// All of them in memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn into_vec(self) -> Result<Vec<T>, FileError> {
        match self {
            Self::Held(items) => Ok(items),
            Self::Written(_) => self.iter()?.collect(),
        }
    }

    /// The items at the nearest ranks of these thousandths, which ascend: see
    /// [`nearest_rank`](crate::nearest_rank).
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn at<const N: usize>(&self, permille: [u32; N]) -> Result<[Option<T>; N], FileError> {
        let mut found = [None; N];
        if let Self::Held(items) = self {
            return Ok(permille.map(|permille| crate::nearest_rank(items, permille)));
        }
        let count = self.len();
        let places = permille.map(|permille| {
            let rank = (u128::from(count) * u128::from(permille)).div_ceil(1000) as u64;
            rank.clamp(1, count.max(1)) - 1
        });
        let mut items = (0..).zip(self.iter()?);
        let mut latest = None;
        for (found, place) in found.iter_mut().zip(places) {
            while latest.is_none_or(|(at, _)| at < place) {
                let Some((at, item)) = items.next() else { break };
                latest = Some((at, item?));
            }
            *found = latest.map(|(_, item)| item);
        }
        Ok(found)
    }
}

/// The items of a [`Sorted`].
pub enum Items<'a, T: Pack> {
    /// In memory.
    Held(slice::Iter<'a, T>),
    /// In a file.
    Merged(Merge<'a, T>),
}

impl<T: Pack> Iterator for Items<'_, T> {
    type Item = Result<T, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Held(items) => items.next().copied().map(Ok),
            Self::Merged(merge) => merge.next().transpose(),
        }
    }
}

/// The runs of a file as one.
pub struct Merge<'a, T: Pack> {
    runs: &'a Runs,
    readers: Vec<RunReader>,
    /// The first of each run, and which run.
    first: Vec<Option<T>>,
    order: BinaryHeap<Reverse<(T::Key, usize)>>,
}

impl<'a, T: Pack> Merge<'a, T> {
    fn new(runs: &'a Runs) -> Result<Self, FileError> {
        let readers: Vec<RunReader> = runs.places.iter().cloned().map(RunReader::new).collect();
        let first = readers.iter().map(|_| None).collect();
        let mut merge = Self { runs, readers, first, order: BinaryHeap::new() };
        (0..merge.readers.len()).try_for_each(|run| merge.advance(run))?;
        Ok(merge)
    }

    /// Have the next item of a run at hand, if there is one.
    fn advance(&mut self, run: usize) -> Result<(), FileError> {
        let item = self.readers[run].next::<T>(&self.runs.file);
        let item = item.map_err(|e| FileError::io("read from", &self.runs.dir, &e))?;
        self.order.extend(item.as_ref().map(|item| Reverse((item.key(), run))));
        self.first[run] = item;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<T>, FileError> {
        let Some(Reverse((_, run))) = self.order.pop() else { return Ok(None) };
        let item = self.first[run].take();
        self.advance(run)?;
        Ok(item)
    }
}

/// Reads a run, a chunk at a time: many are read at once.
struct RunReader {
    /// What has not been read.
    left: Range<u64>,
    bytes: Vec<u8>,
    /// The first byte that has not been taken.
    at: usize,
}

impl RunReader {
    fn new(left: Range<u64>) -> Self {
        Self { left, bytes: Vec::new(), at: 0 }
    }

    fn next<T: Pack>(&mut self, file: &File) -> io::Result<Option<T>> {
        if self.at == self.bytes.len() && self.left.is_empty() {
            return Ok(None);
        }
        self.have(1, file)?;
        let length = usize::from(self.bytes[self.at]);
        self.have(1 + length, file)?;
        let mut packed = &self.bytes[self.at + 1..][..length];
        self.at += 1 + length;
        T::unpack(&mut packed).map(Some)
    }

    /// Have at least `count` bytes at hand.
    fn have(&mut self, count: usize, mut file: &File) -> io::Result<()> {
        if self.bytes.len() - self.at >= count {
            return Ok(());
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let more = (self.left.end - self.left.start).min(CHUNK as u64);
        file.seek(SeekFrom::Start(self.left.start))?;
        let read = file.take(more).read_to_end(&mut self.bytes)? as u64;
        self.left.start += read;
        if read < more || self.bytes.len() < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are neither in order nor all different.
    fn numbers(count: u64) -> impl Iterator<Item = f64> {
        (0..count).map(move |n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as f64 / 7.0)
    }

    fn sorted(count: u64, dir: Option<&Path>) -> Sorted<f64> {
        let mut sorter = Sorter::new(dir);
        numbers(count).for_each(|number| sorter.push(number).unwrap());
        sorter.sort().unwrap()
    }

    #[test]
    fn many_items_are_written_and_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let count = 3 * HELD as u64 + 5;
        let (held, written) = (sorted(count, None), sorted(count, Some(dir.path())));
        let Sorted::Written(runs) = &written else { panic!("in memory") };
        assert_eq!((runs.places.len(), written.len(), held.len()), (4, count, count));
        let at = [0, 1, 500, 990, 999, 1000];
        assert_eq!(written.at(at).unwrap(), held.at(at).unwrap());
        let mut seen = 0;
        let count_it = |_: &mut f64| {
            seen += 1;
            Ok(())
        };
        let counted = written.update(count_it).unwrap();
        assert_eq!(seen, count);
        assert_eq!(counted.into_vec().unwrap(), held.into_vec().unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the files have no names");
    }

    #[test]
    fn few_items_and_none_stay_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for count in [0, 1, HELD as u64 - 1] {
            let few = sorted(count, Some(dir.path()));
            assert!(matches!(few, Sorted::Held(_)), "{count}");
            assert_eq!(few.is_empty(), count == 0);
        }
        assert_eq!(sorted(0, None).at([500]).unwrap(), [None]);
    }

    #[test]
    fn numbers_are_ordered_as_total_cmp_does() {
        let numbers = [f64::NEG_INFINITY, -2.0, -0.0, 0.0, 1.5, f64::INFINITY, f64::NAN];
        for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
            assert_eq!(a.key().cmp(&b.key()), a.total_cmp(b), "{a} {b}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_with_its_name() {
        let mut sorter = Sorter::new(Some(Path::new("/nowhere/at all")));
        let failed = numbers(HELD as u64).find_map(|number| sorter.push(number).err()).unwrap();
        assert!(failed.to_string().contains("/nowhere/at all"), "{failed}");
    }
}
