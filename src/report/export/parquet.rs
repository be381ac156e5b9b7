//! Rows of CSV as an Apache Parquet file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::ExportError;
use crate::store::NewFile;

/// What a column holds. Any cell may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// Whole numbers of 64 bits.
    Whole,
    /// Doubles.
    Number,
}

/// A file in the making.
pub(super) struct ParquetTable {
    path: PathBuf,
    kinds: Vec<Kind>,
    writer: SerializedFileWriter<NewFile>,
}

impl ParquetTable {
    /// A file with these columns; it takes its place when it is finished.
    pub(super) fn create(path: &Path, columns: Vec<(String, Kind)>) -> Result<Self, ExportError> {
        let failed = |source| ExportError::Parquet { path: path.to_owned(), source };
        let schema = Arc::new(schema(&columns).map_err(failed)?);
        // No version of the crate in the bytes: they are the same whatever wrote them.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("diesweep".to_owned())
            .build();
        let file = NewFile::create(path)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), kinds: columns.into_iter().map(|(_, kind)| kind).collect(), writer })
    }

    /// Writes lines of CSV without a header as a row group.
    pub(super) fn write(&mut self, csv: &[u8]) -> Result<(), ExportError> {
        let path = self.path.clone();
        self.write_group(csv).map_err(|source| ExportError::Parquet { path, source })
    }

    fn write_group(&mut self, csv: &[u8]) -> ParquetResult<()> {
        let mut columns: Vec<Column> = self.kinds.iter().map(|kind| Column::new(*kind)).collect();
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv);
        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|error| ParquetError::External(Box::new(error)))? {
            for (column, cell) in columns.iter_mut().zip(&record) {
                column.push(cell)?;
            }
        }
        let mut group = self.writer.next_row_group()?;
        for column in &columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(&mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file and puts it in its place.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let path = self.path;
        let file = self.writer.into_inner().map_err(|source| ExportError::Parquet { path, source })?;
        Ok(file.finish()?)
    }
}

fn schema(columns: &[(String, Kind)]) -> ParquetResult<Type> {
    let field = |(name, kind): &(String, Kind)| {
        let (physical, logical) = match kind {
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (PhysicalType::INT64, None),
            Kind::Number => (PhysicalType::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(field.build()?))
    };
    let fields: Vec<Arc<Type>> = columns.iter().map(field).collect::<ParquetResult<_>>()?;
    Type::group_type_builder("table").with_fields(fields).build()
}

/// A column of a row group: its values, and for each row whether it has one.
struct Column {
    present: Vec<i16>,
    values: Values,
}

enum Values {
    Texts(Vec<ByteArray>),
    Whole(Vec<i64>),
    Numbers(Vec<f64>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Whole => Values::Whole(Vec::new()),
            Kind::Number => Values::Numbers(Vec::new()),
        };
        Self { present: Vec::new(), values }
    }

    fn push(&mut self, cell: &[u8]) -> ParquetResult<()> {
        let absent = cell.is_empty() || cell == b"NaN" && matches!(self.values, Values::Whole(_));
        self.present.push(i16::from(!absent));
        if absent {
            return Ok(());
        }
        match &mut self.values {
            Values::Texts(texts) => texts.push(ByteArray::from(cell.to_vec())),
            // A column that a row may lack has its whole numbers with a point.
            Values::Whole(numbers) => numbers.push(parse(cell.strip_suffix(b".0").unwrap_or(cell))?),
            Values::Numbers(numbers) => numbers.push(parse(cell)?),
        }
        Ok(())
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
        let present = Some(self.present.as_slice());
        match &self.values {
            Values::Texts(texts) => writer.typed::<ByteArrayType>().write_batch(texts, present, None)?,
            Values::Whole(numbers) => writer.typed::<Int64Type>().write_batch(numbers, present, None)?,
            Values::Numbers(numbers) => writer.typed::<DoubleType>().write_batch(numbers, present, None)?,
        };
        Ok(())
    }
}

fn parse<T: std::str::FromStr>(cell: &[u8]) -> ParquetResult<T> {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    text.parse().map_err(|_| ParquetError::General(format!("`{}` is not a number", String::from_utf8_lossy(cell))))
}
