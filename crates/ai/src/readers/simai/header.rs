//! The first line of a workload: the policy, the sizes of groups, checkpoints.

use workload::text::{Line as TextLine, Parsed, Place, Source, Word, one_of};

use super::Policy;
use super::layers::Layer;
use crate::readers::Warnings;
use crate::readers::program::Layout;

const STAGES_IGNORED: &str =
    "pipeline stages; as in SimAI's packet simulation every rank runs every layer";
const PP_COMM_IGNORED: &str = "bytes between pipeline stages (pp_comm), which are not sent";
/// The first line.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) policy: Policy,
    pub(super) layout: Layout,
    pp: u32,
    pp_comm: u64,
    /// Layers at which the forward pass can begin again, sorted.
    checkpoints: Vec<LayerNumber>,
    /// Layers before whose backward pass it does, sorted.
    initiates: Vec<LayerNumber>,
}

#[derive(Clone, Copy, Debug)]
struct LayerNumber {
    number: u32,
    at: Place,
}

/// The keys of the first line. A colon follows each; SimAI also takes `pp_comm` without.
const KEYS: [&str; 10] = [
    "model_parallel_NPU_group",
    "ep",
    "pp",
    "vpp",
    "ga",
    "all_gpus",
    "checkpoints",
    "checkpoint_initiates",
    "pp_comm",
    "expert_parallel_npu_group",
];

/// The values of [`KEYS`], and the list after those that count a list.
#[derive(Default)]
struct Values<'a> {
    words: [Option<Word<'a>>; KEYS.len()],
    numbers: [u32; KEYS.len()],
    lists: [Vec<LayerNumber>; KEYS.len()],
}

const TP: usize = 0;
const EP: usize = 1;
const PP: usize = 2;
const ALL_GPUS: usize = 5;
const CHECKPOINTS: usize = 6;
const INITIATES: usize = 7;
const PP_COMM: usize = 8;
/// What AICB's micro tests call `ep`.
const EP_LONG: usize = 9;

impl<'a> Values<'a> {
    fn read(source: &Source<'a>, line: &TextLine<'a>) -> Parsed<Self> {
        let mut values = Self::default();
        let mut at = 1;
        while let Some(&key) = line.words().get(at) {
            let name = key.text.strip_suffix(':').unwrap_or(key.text);
            let Some(index) = KEYS.iter().position(|known| *known == name) else {
                return Err(source.wrong(key, "unknown key", one_of(name, &KEYS)));
            };
            let word = line.word(at + 1);
            if values.words[index].replace(word).is_some() {
                return Err(source.wrong(key, "this key is given twice", "keep one of them"));
            }
            // AICB writes what it has divided as a fraction: "25165824.0".
            let whole = word.text.strip_suffix(".0").unwrap_or(word.text);
            values.numbers[index] = source.whole_u32(Word { text: whole, ..word }, name)?;
            at += 2;
            if [CHECKPOINTS, INITIATES].contains(&index) {
                for _ in 0..values.numbers[index] {
                    let word = line.word(at);
                    let number = source.whole_u32(word, "the number of a layer")?;
                    values.lists[index].push(LayerNumber { number, at: word.at });
                    at += 1;
                }
                values.lists[index].sort_by_key(|layer| layer.number);
            }
        }
        Ok(values)
    }

    /// The value of a key that counts something; one where it is absent or 0.
    fn count(&self, index: usize) -> u32 {
        self.numbers[index].max(1)
    }

    /// The layout of `ranks` ranks that the groups' sizes make.
    fn layout(&self, source: &Source<'_>, ranks: u32) -> Parsed<Layout> {
        let divides = |index: usize, size: u32, whole: u32, of: &str| {
            if whole.is_multiple_of(size) {
                return Ok(whole / size);
            }
            let word = self.words[index].unwrap_or_default();
            let message = format!("groups of {size} do not divide the {whole} {of}");
            Err(source.wrong(word, message, "correct this or all_gpus"))
        };
        let tp = match self.numbers[TP] {
            0 => ranks.max(1),
            tp => tp,
        };
        let dp = divides(TP, tp, ranks, "GPUs")?;
        let key = if self.words[EP].is_some() { EP } else { EP_LONG };
        let ep = self.count(key);
        divides(key, ep, dp, "GPUs of a data-parallel group")?;
        Ok(Layout { tp, ep, dp, pp: 1 })
    }
}

impl Header {
    pub(super) fn read(source: &Source<'_>, line: &TextLine<'_>, room: u32) -> Parsed<Self> {
        let policy = Policy::read(source, line.first())?;
        let mut values = Values::read(source, line)?;
        let ranks = match (values.words[ALL_GPUS], values.numbers[ALL_GPUS]) {
            (Some(word), ranks) if ranks > room => {
                let message = format!("more GPUs than the {room} that there is room for");
                let hint = "use a larger topology, more ranks a host, or a smaller trace";
                return Err(source.wrong(word, message, hint));
            }
            (_, 0) => room,
            (_, ranks) => ranks,
        };
        let [checkpoints, initiates] =
            [CHECKPOINTS, INITIATES].map(|index| std::mem::take(&mut values.lists[index]));
        Ok(Self {
            policy,
            layout: values.layout(source, ranks)?,
            pp: values.count(PP),
            pp_comm: u64::from(values.numbers[PP_COMM]),
            checkpoints,
            initiates,
        })
    }

    pub(super) fn warn(&self, warnings: &mut Warnings) {
        if self.pp > 1 {
            warnings.add(STAGES_IGNORED, u64::from(self.pp));
        }
        if self.pp_comm > 0 {
            warnings.add(PP_COMM_IGNORED, self.pp_comm);
        }
    }

    /// The checkpoint from which the forward pass begins again before the backward pass of layer
    /// `index`.
    fn checkpoint(&self, index: u32) -> Option<u32> {
        let before = self.checkpoints.partition_point(|layer| layer.number <= index);
        self.checkpoints.get(before.checked_sub(1)?).map(|layer| layer.number)
    }

    /// The layers that run forward again before the backward pass of layer `index`.
    pub(super) fn recomputed(&self, index: usize) -> std::ops::Range<usize> {
        let number = index as u32;
        let initiates = self.initiates.binary_search_by_key(&number, |layer| layer.number).is_ok();
        if self.policy != Policy::TransformerFwdInBckwd || !initiates {
            return index..index;
        }
        self.checkpoint(number).map_or(index, |first| first as usize)..index
    }

    /// That the layers that `checkpoints` and `checkpoint_initiates` name exist, and that none is
    /// run forward twice.
    pub(super) fn check_checkpoints(
        &self,
        source: &Source<'_>,
        layers: &[Layer<'_>],
    ) -> Parsed<()> {
        let wrong = |layer: &LayerNumber, message: &str, hint: &str| {
            let text = layer.number.to_string();
            Err(source.wrong(Word { text: &text, at: layer.at }, message, hint))
        };
        for layer in self.checkpoints.iter().chain(&self.initiates) {
            if layer.number as usize >= layers.len() {
                let message = format!("no such layer: there are {}", layers.len());
                return wrong(layer, &message, "layers are numbered from 0");
            }
        }
        let mut before = None;
        for layer in &self.initiates {
            let Some(checkpoint) = self.checkpoint(layer.number) else {
                let hint = "give a layer at or before it in checkpoints";
                return wrong(layer, "no checkpoint is before this layer", hint);
            };
            if before.is_some_and(|before| before >= checkpoint) {
                let hint = "give a checkpoint after the layer before in this list";
                return wrong(layer, "layers would be run forward twice", hint);
            }
            before = Some(layer.number);
        }
        Ok(())
    }
}
