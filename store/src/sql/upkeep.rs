//! The upkeep of a database: its version, damage, copies, and its rows as lines of JSON, which can move from one kind of
//! database to the other.

use std::io::{self, BufRead, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::TryStreamExt as _;
use gatewright_system::crash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::SqlStore;
use super::dialect::Dialect;
use super::migrations::LATEST;
use super::tables::{ColumnKind, TABLES, Table};
use crate::traits::{Lines, StoreError, StoreFuture, UpkeepStore};

/// Version of the export format.
const FORM: u64 = 1;
/// Maximum length of a line in an import, in bytes.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The first line of an export.
#[derive(Serialize, Deserialize)]
struct ExportHeader {
    gatewright_store: u64,
    /// The version of the tables.
    migration: i64,
    /// The check that recognizes the pepper, in base64.
    pepper: Option<String>,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportTrailer {
    rows: u64,
}

#[derive(Deserialize)]
struct ExportLine {
    table: String,
    row: Map<String, Value>,
}

fn unwritten(error: &io::Error) -> StoreError {
    StoreError::Failed(format!("the rows cannot be written: {error}"))
}

impl Table {
    fn select(&self) -> String {
        let column = |(name, kind): &(&str, ColumnKind)| match kind {
            ColumnKind::Truth => format!("CASE WHEN {name} THEN 1 ELSE 0 END AS {name}"),
            _ => (*name).to_owned(),
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), self.name, self.order)
    }

    fn insert(&self, columns: &[(&str, ColumnKind)]) -> String {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, names.join(", "), values.join(", "))
    }

    /// A row as JSON.
    fn read(&self, row: &AnyRow) -> Result<Value, StoreError> {
        let mut members = Map::new();
        for (name, kind) in self.columns {
            let value = match kind {
                ColumnKind::Text => row.try_get::<Option<String>, _>(*name)?.map(Value::from),
                ColumnKind::Count => row.try_get::<Option<i64>, _>(*name)?.map(Value::from),
                ColumnKind::Bytes => {
                    let bytes = row.try_get::<Option<Vec<u8>>, _>(*name)?;
                    bytes.map(|bytes| BASE64_STANDARD.encode(bytes).into())
                }
                ColumnKind::Truth => Some((row.try_get::<i64, _>(*name)? != 0).into()),
            };
            members.insert((*name).to_owned(), value.unwrap_or(Value::Null));
        }
        Ok(json!({ "table": self.name, "row": members }))
    }

    /// Adds a row from an export.
    async fn add(
        &self,
        row: &Map<String, Value>,
        writing: &mut Transaction<'static, Any>,
    ) -> Result<(), String> {
        let known = |name: &String| self.columns.iter().any(|(column, _)| column == name);
        if let Some(unknown) = row.keys().find(|name| !known(name)) {
            return Err(format!("the table {} has no column {unknown:?}", self.name));
        }
        // An export of an earlier version lacks newer columns: they get their defaults.
        let columns = self.columns.iter().filter(|(name, _)| row.contains_key(*name));
        let columns: Vec<(&str, ColumnKind)> = columns.copied().collect();
        let mut insert = sqlx::query(AssertSqlSafe(self.insert(&columns)));
        for (name, kind) in &columns {
            insert = bind(insert, &row[*name], *kind)
                .ok_or_else(|| format!("{name} of {} is not a {kind:?}", self.name))?;
        }
        insert.execute(&mut **writing).await.map_err(|error| error.to_string())?;
        Ok(())
    }
}

type Insert<'q> = sqlx::query::Query<'q, Any, AnyArguments>;

/// None: the value has another type.
fn bind<'q>(insert: Insert<'q>, value: &Value, kind: ColumnKind) -> Option<Insert<'q>> {
    Some(match (kind, value) {
        (ColumnKind::Text, Value::String(text)) => insert.bind(text.clone()),
        (ColumnKind::Text, Value::Null) => insert.bind(None::<String>),
        (ColumnKind::Count, Value::Null) => insert.bind(None::<i64>),
        (ColumnKind::Count, count) => insert.bind(count.as_i64()?),
        (ColumnKind::Bytes, Value::String(text)) => insert.bind(BASE64_STANDARD.decode(text).ok()?),
        (ColumnKind::Bytes, Value::Null) => insert.bind(None::<Vec<u8>>),
        (ColumnKind::Truth, Value::Bool(truth)) => insert.bind(*truth),
        _ => return None,
    })
}

impl SqlStore {
    async fn begin_reading(&self) -> Result<Transaction<'static, Any>, StoreError> {
        let begin = match self.dialect() {
            Dialect::Sqlite => "BEGIN",
            Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let mut reading = self.connections().await?.begin_with(begin).await?;
        self.take_time(&mut reading).await?;
        Ok(reading)
    }

    /// Lifts the server's time limits for a transaction: reading or writing the lines may be slow.
    async fn take_time(&self, transaction: &mut Transaction<'static, Any>) -> Result<(), StoreError> {
        if self.dialect() == Dialect::Postgres {
            for limit in ["statement_timeout", "idle_in_transaction_session_timeout"] {
                sqlx::query(AssertSqlSafe(format!("SET LOCAL {limit} = 0")))
                    .execute(&mut **transaction)
                    .await?;
            }
        }
        Ok(())
    }

    async fn export_rows(&self, lines: Lines<'_>) -> Result<u64, StoreError> {
        let mut reading = self.begin_reading().await?;
        let state = sqlx::query("SELECT pepper FROM state").fetch_one(&mut *reading).await?;
        let pepper = state.try_get::<Option<Vec<u8>>, _>(0)?.map(|pepper| BASE64_STANDARD.encode(pepper));
        let beginning = ExportHeader { gatewright_store: FORM, migration: LATEST, pepper };
        lines(&json!(beginning).to_string()).map_err(|error| unwritten(&error))?;
        let mut count = 0;
        for table in TABLES {
            let select = sqlx::query(AssertSqlSafe(table.select()));
            let mut rows = select.fetch(&mut *reading);
            while let Some(row) = rows.try_next().await? {
                lines(&table.read(&row)?.to_string()).map_err(|error| unwritten(&error))?;
                count += 1;
            }
        }
        lines(&json!(ExportTrailer { rows: count }).to_string()).map_err(|error| unwritten(&error))?;
        Ok(count)
    }

    async fn import_rows(&self, lines: &mut (dyn BufRead + Send)) -> Result<u64, StoreError> {
        let mut number = 1_u64;
        let wrong = |number: u64, why: &str| StoreError::Failed(format!("line {number}: {why}"));
        let Some(first) = line(lines).map_err(|why| wrong(1, &why))? else {
            return Err(wrong(1, "the file is empty"));
        };
        let beginning: ExportHeader = serde_json::from_str(&first)
            .map_err(|_| wrong(1, "it is not an export of gatewright store export"))?;
        if beginning.gatewright_store != FORM || beginning.migration > LATEST {
            return Err(wrong(
                1,
                "it was written by a newer version of gatewright; use that version or a later one",
            ));
        }
        crash::point();
        let mut writing = self.begin_writing().await?;
        self.take_time(&mut writing).await?;
        for Table { name, .. } in TABLES {
            let any = sqlx::query(AssertSqlSafe(format!("SELECT 1 FROM {name} LIMIT 1")));
            if any.fetch_optional(&mut *writing).await?.is_some() {
                let message = format!("the store is not empty: it has {name}; import into a new one");
                return Err(StoreError::Failed(message));
            }
        }
        if let Some(pepper) = &beginning.pepper {
            let pepper = BASE64_STANDARD.decode(pepper).map_err(|_| wrong(1, "pepper is not base64"))?;
            let keep = sqlx::query("UPDATE state SET pepper = $1");
            keep.bind(pepper).execute(&mut *writing).await?;
        }
        loop {
            let text = line(lines).map_err(|why| wrong(number + 1, &why))?;
            let text = text.ok_or_else(|| wrong(number + 1, "the file ends too early"))?;
            if let Ok(ExportTrailer { rows }) = serde_json::from_str(&text) {
                if rows == number - 1 {
                    break;
                }
                return Err(wrong(
                    number + 1,
                    &format!("{rows} rows were exported, but {} are here", number - 1),
                ));
            }
            number += 1;
            let ExportLine { table, row } =
                serde_json::from_str(&text).map_err(|error| wrong(number, &error.to_string()))?;
            let found = TABLES.iter().find(|known| known.name == table);
            let table = found.ok_or_else(|| wrong(number, &format!("there is no table {table:?}")))?;
            table.add(&row, &mut writing).await.map_err(|why| wrong(number, &why))?;
            crash::point();
        }
        crash::point();
        self.commit(writing).await?;
        crash::point();
        Ok(number - 1)
    }
}

/// The next line, of bounded length. None at the end.
fn line(lines: &mut (dyn BufRead + Send)) -> Result<Option<String>, String> {
    let mut line = String::new();
    let read = lines.take(MAX_LINE_BYTES).read_line(&mut line).map_err(|error| error.to_string())?;
    if read as u64 == MAX_LINE_BYTES {
        return Err(format!("it is larger than {MAX_LINE_BYTES} bytes"));
    }
    Ok((read > 0).then_some(line))
}

impl UpkeepStore for SqlStore {
    fn migrate(&self) -> StoreFuture<'_, i64> {
        Box::pin(async {
            self.connections().await?;
            Ok(LATEST)
        })
    }

    fn damage(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async {
            let mut found = Vec::new();
            if self.dialect() == Dialect::Sqlite {
                let checked =
                    sqlx::query("PRAGMA integrity_check").fetch_all(&self.connections().await?).await?;
                for row in checked {
                    found.extend(Some(row.try_get::<String, _>(0)?).filter(|finding| finding != "ok"));
                }
            }
            // Reads each row.
            self.export_rows(&mut |_| Ok(())).await?;
            Ok(found)
        })
    }

    fn checkpoint(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            if self.dialect() == Dialect::Sqlite {
                // Another process that uses the file may prevent part of it from being moved.
                sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_all(&self.connections().await?).await?;
            }
            Ok(())
        })
    }

    fn export<'s>(&'s self, lines: Lines<'s>) -> StoreFuture<'s, u64> {
        Box::pin(self.export_rows(lines))
    }

    fn import<'s>(&'s self, lines: &'s mut (dyn BufRead + Send)) -> StoreFuture<'s, u64> {
        Box::pin(self.import_rows(lines))
    }

    fn copy_to<'s>(&'s self, file: &'s Path) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            if self.dialect() == Dialect::Postgres {
                return Err(StoreError::Failed(
                    "back up a server with its own tools, such as pg_dump".to_owned(),
                ));
            }
            let path =
                file.to_str().ok_or_else(|| StoreError::Failed("the path is not Unicode text".to_owned()))?;
            sqlx::query("VACUUM INTO $1").bind(path.to_owned()).execute(&self.connections().await?).await?;
            Ok(())
        })
    }

    #[cfg(test)]
    fn columns(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async {
            let columns = sqlx::query(match self.dialect() {
                Dialect::Sqlite => {
                    "SELECT t.name || '.' || c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c
                     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
                }
                Dialect::Postgres => {
                    "SELECT table_name || '.' || column_name FROM information_schema.columns
                     WHERE table_schema = current_schema()"
                }
            });
            let columns = columns.fetch_all(&self.connections().await?).await?;
            columns.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
    }
}
