//! The trainer's flags, made from the table of settings.

use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Command};

use crate::settings::table::TABLE;
use crate::settings::{Initial, Kind, Preset, Setting, Settings, Value, resolve, setting};

/// The settings that a command line gives; every setting is a flag, `--` and its key with `-` for `_` (`_` is taken too).
#[derive(Clone, Debug, Default)]
pub struct SettingFlags {
    given: Vec<(&'static Setting, Value)>,
}

impl SettingFlags {
    /// The settings they come to: what is not given takes its preset's default.
    pub fn resolve(&self) -> Settings {
        resolve(&self.given)
    }

    /// What is given, over settings that something else says: a file's own.
    pub fn over(&self, base: &Settings) -> Settings {
        let mut settings = base.clone();
        for (row, value) in &self.given {
            row.set(&mut settings, value);
        }
        settings
    }
}

/// The flags' names without their dashes, in the table's order: clap wants them to live as long as the program.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| TABLE.iter().map(|row| row.key.replace('_', "-")).collect());

fn argument(row: &'static Setting, name: &'static str) -> Arg {
    let key = row.key;
    let kind = row.kind;
    let arg = Arg::new(key).long(name).help(help(row)).value_name(value_name(&kind)).allow_hyphen_values(true);
    // As in the driver, of a flag that is given twice the last holds.
    let arg = arg.overrides_with(key);
    let arg = if key.contains('_') { arg.alias(key) } else { arg };
    match kind {
        Kind::Word(words) => arg.value_parser(PossibleValuesParser::new(words)),
        _ => arg.value_parser(ValueParser::new(move |text: &str| {
            kind.parse(text).map(|_| text.to_owned()).ok_or_else(|| format!("{} is wanted", kind.describe()))
        })),
    }
}

const fn value_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Int { .. } | Kind::IntFromOne { .. } | Kind::IntOr { .. } => "N",
        Kind::Float(..) => "X",
        Kind::Bool => "BOOL",
        Kind::Word(_) => "WORD",
        Kind::Path => "PATH",
    }
}

fn help(row: &Setting) -> String {
    let default = match row.initial(Preset::Standard) {
        Initial::Int(v) => v.to_string(),
        Initial::Float(v) => Value::Float(v).to_string(),
        Initial::Bool(v) => v.to_string(),
        Initial::Text(v) => v.to_owned(),
        Initial::Same(key) => format!("that of --{}", key.replace('_', "-")),
    };
    format!("{} [default: {default}]", row.help.trim_end_matches('.').replace('`', ""))
}

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        TABLE.iter().zip(NAMES.iter()).fold(command, |command, (row, name)| command.arg(argument(row, name)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let given = |row: &'static Setting| {
            let text = matches.get_one::<String>(row.key)?;
            Some((setting(row.key)?, row.kind.parse(text)?))
        };
        self.given = TABLE.iter().filter_map(given).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::settings::{Opt, ScaleInit};

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: SettingFlags,
    }

    fn parse(line: &str) -> Result<Settings, String> {
        let words = std::iter::once("train").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.flags.resolve()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_of_the_reference_driver_is_taken() {
        let line = "--opt sr4 --target-step 0.01 --lr 2e-3 --lr-min 1e-5 --scale-lr 0.02 --seq-len 64 --batch 2 --steps 7 \
            --eval-every 3 --eval-batches 2 --seed 99 --C 32 --n-head 2 --head-size 16 --n-rwkv 2 --n-attn 1 --ffn 64 \
            --lora 8 --data some/file";
        let s = parse(line).unwrap();
        assert_eq!((s.opt, s.target_step, s.lr, s.lr_min, s.scale_lr), (Opt::Sr4, 0.01, 2e-3, 1e-5, 0.02));
        assert_eq!((s.seq_len, s.batch, s.steps, s.eval_every, s.eval_batches, s.seed), (64, 2, 7, 3, 2, 99));
        assert_eq!((s.c, s.n_head, s.head_size, s.n_rwkv, s.n_attn, s.ffn, s.lora), (32, 2, 16, 2, 1, 64, 8));
        assert_eq!(s.data, crate::settings::Data::Path("some/file".into()));
    }

    #[test]
    fn defaults_presets_and_underscores() {
        assert_eq!(parse("").unwrap(), Settings::default());
        assert_eq!(parse("--eval-every 0").unwrap().eval_every, 1);
        assert_eq!(parse("--seq_len 64").unwrap(), parse("--seq-len=64").unwrap());
        let quirks = parse("--preset reference --scale-init fan_in").unwrap();
        assert_eq!((quirks.scale_init, quirks.dither_seed), (ScaleInit::FanIn, 42));
    }

    #[test]
    fn wrong_values_say_what_is_wanted() {
        let error = parse("--seed 0").unwrap_err();
        assert!(error.contains("invalid value '0' for '--seed <N>': a whole number from 1 up is wanted"), "{error}");
        let error = parse("--lr -1").unwrap_err();
        assert!(error.contains("'-1' for '--lr <X>': a number at least 0 is wanted"), "{error}");
        let error = parse("--opt sgd").unwrap_err();
        assert!(error.contains("[possible values: adamw, sr4]"), "{error}");
        let error = parse("--target-stp 1").unwrap_err();
        assert!(error.contains("unexpected argument '--target-stp'") && error.contains("--target-step"), "{error}");
        for line in ["--steps 1.5", "--steps", "--lr nan", "--lr inf", "--q-clamp 2", "--dither maybe", "stray"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
