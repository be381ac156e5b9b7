//! The kernels, one typed row each, in a file for each of `kernels/`.

pub mod attention;
pub mod clear;
pub mod control;
pub mod data;
pub mod loss;
pub mod norm;
pub mod optimizer;
pub mod product;
pub mod recurrence;
pub mod time_mix;

use super::kernel::{Kernel, Row};

macro_rules! rows {
    ($($module:ident: $($name:ident),+;)+) => {
        /// Every kernel; all are loaded when a die is opened.
        pub const ROWS: &[Row] = &[$($(<$module::$name as Kernel>::ROW),+),+];
    };
}

rows! {
    attention: ChunkMeans, Choose, Scores, Rows, Columns, Softmax, SoftmaxBackward;
    clear: Clear;
    control: BeginStep, CollectLoss, JudgeStep, BeginGroup, GatherGroup, KeepScores, PanelScales, PanelWeights;
    data: GatherWindows, Embed, EmbedBackward;
    loss: CrossEntropy, LossTotals;
    norm: LayerNorm, LayerNormBackward, ColumnTotals;
    optimizer: GradientPieces, GradientNorm, AdamW, Sr4Weights, Sr4Columns, Sr4Magnitudes, Sr4Update;
    product: Odd, Small, Medium, Wide;
    recurrence: ForwardUpto16, ForwardUpto32, ForwardUpto64, ForwardUpto128, ForwardOf32, ForwardOf32x2, ForwardOf32x4, ForwardOf64,
        RowsUpto16, RowsUpto32, RowsUpto64, RowsUpto128, RowsOf32, RowsOf32x2, RowsOf32x4, RowsOf64,
        ColumnsUpto16, ColumnsUpto32, ColumnsUpto64, ColumnsUpto128, ColumnsOf32, ColumnsOf64;
    time_mix: Prepare, Finish, FinishBackward, PrepareBackward;
}

#[cfg(test)]
mod tests {
    use super::super::source::FILES;
    use super::*;

    /// The kernel's parameters as its source has them: (type, name).
    fn declared(source: &str, entry: &str) -> Vec<(String, String)> {
        let plain: String =
            source.lines().map(|line| line.split("//").next().unwrap_or("").replace('\\', " ") + "\n").collect();
        let at = plain.find(&format!(" {entry}(")).unwrap_or_else(|| panic!("no kernel {entry}"));
        let open = at + plain[at..].find('(').unwrap() + 1;
        let list = &plain[open..open + plain[open..].find(')').unwrap()];
        list.split(',')
            .map(|one| {
                let words: Vec<&str> = one.split_whitespace().collect();
                let (name, kind) = words.split_last().unwrap();
                (kind.join(" "), (*name).to_owned())
            })
            .collect()
    }

    #[test]
    fn every_row_has_the_parameters_of_its_kernel() {
        for row in ROWS {
            let file = FILES.iter().find(|f| f.path == row.file).unwrap_or_else(|| panic!("no {}", row.file));
            // A family of kernels is one macro; its parameters stand there once.
            let ends = ["_upto16", "_upto32", "_upto64", "_upto128", "_of32", "_of32x2", "_of32x4", "_of64"];
            let entry = ends.iter().find_map(|end| row.entry.strip_suffix(end));
            let entry = match entry {
                Some(stem) => format!("{stem}_##NAME"),
                None => row.entry.to_owned(),
            };
            let ours: Vec<(String, String)> =
                row.parameters.iter().map(|p| (p.kind.to_owned(), p.name.to_owned())).collect();
            assert_eq!(declared(file.text, &entry), ours, "{}", row.entry);
        }
    }

    #[test]
    fn every_kernel_of_the_source_has_a_row() {
        for file in FILES {
            let plain = file.text.matches("extern \"C\" __global__").count();
            let families = match file.path {
                "kernels/recurrence.cu" => 22,
                _ => plain,
            };
            let rows = ROWS.iter().filter(|row| row.file == file.path).count();
            assert_eq!(rows, families, "{}", file.path);
        }
        let mut entries: Vec<_> = ROWS.iter().map(|row| row.entry).collect();
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), ROWS.len(), "an entry stands twice");
    }
}
