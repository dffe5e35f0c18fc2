//! The values of all ports in one cycle, as words.

/// A port of a design: its name, and its width in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    name: String,
    bits: u32,
}

/// Bits of a word of a record.
const WORD: u32 = 32;

impl Port {
    /// A port of at least one bit.
    #[must_use]
    pub fn new(name: &str, bits: u32) -> Self {
        Self { name: name.to_owned(), bits: bits.max(1) }
    }

    /// Its name in the design.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its width.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Words of it in a record.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.bits.div_ceil(WORD) as usize
    }
}

/// Ports one after another: which words of a record are whose.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    ports: Vec<Port>,
    /// First word of each port, and the end.
    begins: Vec<usize>,
}

/// The values of the ports of a layout in one cycle. Words of a port: the least significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(pub(crate) Vec<u32>);

impl Layout {
    /// Of these ports, in this order.
    #[must_use]
    pub fn new(ports: Vec<Port>) -> Self {
        let mut begins = vec![0];
        for port in &ports {
            begins.push(begins[begins.len() - 1] + port.words());
        }
        Self { ports, begins }
    }

    /// Its ports.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Words of a record.
    #[must_use]
    pub fn words(&self) -> usize {
        self.begins.last().copied().unwrap_or(0)
    }

    /// The place of the port of this name.
    ///
    /// # Panics
    /// There is none: a mistake of whoever wrote the bench.
    #[must_use]
    pub fn port(&self, name: &str) -> usize {
        let at = self.ports.iter().position(|port| port.name == name);
        at.unwrap_or_else(|| panic!("no port `{name}` among {:?}", self.ports))
    }

    /// All ports zero.
    #[must_use]
    pub fn zero(&self) -> Record {
        Record(vec![0; self.words()])
    }

    /// Set a port. Bits beyond its width are lost.
    pub fn set(&self, record: &mut Record, port: usize, value: u128) {
        let words: Vec<u32> = (0..4).map(|word| (value >> (WORD * word)) as u32).collect();
        self.set_words(record, port, &words);
    }

    /// Set a port of any width from words, the least significant first; what is missing is zero.
    pub fn set_words(&self, record: &mut Record, port: usize, words: &[u32]) {
        let place = self.begins[port]..self.begins[port + 1];
        let given = words.iter().copied().chain(std::iter::repeat(0));
        record.0[place.clone()].iter_mut().zip(given).for_each(|(to, word)| *to = word);
        let spare = self.ports[port].bits % WORD;
        if spare != 0 {
            record.0[place.end - 1] &= (1 << spare) - 1;
        }
    }

    /// Set the port of this name.
    pub fn set_named(&self, record: &mut Record, name: &str, value: u128) {
        self.set(record, self.port(name), value);
    }

    /// The lowest 128 bits of the port of this name.
    #[must_use]
    pub fn get_named(&self, record: &Record, name: &str) -> u128 {
        self.get(record, self.port(name))
    }

    /// Set a port whose most significant byte is the first; what is missing at the end is zero.
    pub fn set_bytes(&self, record: &mut Record, port: usize, bytes: &[u8]) {
        let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let word = |at: usize| (0..4).fold(0, |word, i| word << 8 | byte(4 * at + i));
        let words: Vec<u32> = (0..self.ports[port].words()).rev().map(word).collect();
        self.set_words(record, port, &words);
    }

    /// And back.
    #[must_use]
    pub fn get_bytes(&self, record: &Record, port: usize) -> Vec<u8> {
        let words = self.get_words(record, port).iter().rev();
        words.flat_map(|word| word.to_be_bytes()).collect()
    }

    /// The lowest 128 bits of a port.
    #[must_use]
    pub fn get(&self, record: &Record, port: usize) -> u128 {
        let words = self.get_words(record, port).iter().take(4).zip(0..);
        words.fold(0, |value, (word, at)| value | u128::from(*word) << (WORD * at))
    }

    /// The ports that are not zero, with their values in hexadecimal.
    #[must_use]
    pub fn show(&self, record: &Record) -> String {
        let mut shown = Vec::new();
        for (at, port) in self.ports.iter().enumerate() {
            let words = self.get_words(record, at).iter().rev();
            let digits: String = words.map(|word| format!("{word:08x}")).collect();
            match digits.trim_start_matches('0') {
                "" => {}
                digits => shown.push(format!("{} = {digits}", port.name)),
            }
        }
        if shown.is_empty() { "all zero".to_owned() } else { shown.join(", ") }
    }

    /// All words of a port.
    #[must_use]
    pub fn get_words<'a>(&self, record: &'a Record, port: usize) -> &'a [u32] {
        &record.0[self.begins[port]..self.begins[port + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_keep_to_their_words_and_widths() {
        let ports = vec![Port::new("a", 1), Port::new("wide", 100), Port::new("b", 33)];
        let layout = Layout::new(ports);
        assert_eq!((layout.words(), layout.port("b")), (7, 2));
        let mut record = layout.zero();
        layout.set(&mut record, 0, 3);
        layout.set(&mut record, 1, u128::MAX);
        layout.set(&mut record, 2, 5 << 31);
        let values = [0, 1, 2].map(|port| layout.get(&record, port));
        assert_eq!(values, [1, (1 << 100) - 1, 1 << 31], "what is beyond a width is lost");
        layout.set_words(&mut record, 1, &[7]);
        assert_eq!(layout.get_words(&record, 1), [7, 0, 0, 0]);
        assert_eq!(layout.get(&record, 2), 1 << 31);
    }
}
