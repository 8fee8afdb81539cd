//! Structured output: answers as values of the caller's types. The type's JSON Schema, made strict, goes with the request
//! (structured/schema.rs); the answer's text is read as the type (structured/reading.rs), or while it arrives
//! (structured/streams.rs).

mod calls;
pub(crate) mod reading;
pub(crate) mod schema;
mod streams;

use std::ops::Deref;

use crate::transport::response::Response;

pub use self::streams::ParsedStream;

/// An answer with the values that its text holds. It dereferences to the answer.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::schemars::{self, JsonSchema};
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize, JsonSchema)]
/// struct City {
///     name: String,
///     population: u32,
/// }
///
/// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("The capital of France?")]);
/// let answer = client.chat().completions().parse::<City>(&request).await?;
/// match answer.value() {
///     Some(city) => println!("{} has {} inhabitants", city.name, city.population),
///     None => println!("refused: {:?}", answer.refusal()),
/// }
/// println!("{} tokens", answer.usage.total_tokens);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Parsed<A, T> {
    answer: Response<A>,
    /// One per choice; an answer of the responses protocol has one.
    values: Vec<Option<T>>,
    refusal: Option<String>,
}

impl<A, T> Parsed<A, T> {
    /// The value of the first choice; none if the model refused, or calls tools instead.
    ///
    /// ```no_run
    /// # use gatewright::{Parsed, types::ChatCompletion};
    /// # fn example<City: std::fmt::Debug>(answer: &Parsed<ChatCompletion, City>) {
    /// match answer.value() {
    ///     Some(city) => println!("{city:?}"),
    ///     None => println!("refused: {:?}", answer.refusal()),
    /// }
    /// # }
    /// ```
    pub fn value(&self) -> Option<&T> {
        self.values.first()?.as_ref()
    }

    /// As [`Parsed::value`], by value.
    ///
    /// ```no_run
    /// # use gatewright::{Parsed, types::ChatCompletion};
    /// # fn example<City>(answer: Parsed<ChatCompletion, City>) {
    /// let city: Option<City> = answer.into_value();
    /// # }
    /// ```
    pub fn into_value(self) -> Option<T> {
        self.values.into_iter().next()?
    }

    /// The value of every choice, in the order of the choices.
    ///
    /// ```no_run
    /// # use gatewright::{Parsed, types::ChatCompletion};
    /// # fn example<City: std::fmt::Debug>(answer: &Parsed<ChatCompletion, City>) {
    /// for city in answer.values().iter().flatten() {
    ///     println!("{city:?}");
    /// }
    /// # }
    /// ```
    pub fn values(&self) -> &[Option<T>] {
        &self.values
    }

    /// The model's own words for why the first choice has no value.
    ///
    /// ```no_run
    /// # use gatewright::{Parsed, types::ChatCompletion};
    /// # fn example<City>(answer: &Parsed<ChatCompletion, City>) {
    /// if let Some(refusal) = answer.refusal() {
    ///     println!("the model refused: {refusal}");
    /// }
    /// # }
    /// ```
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The answer as it came.
    ///
    /// ```no_run
    /// # use gatewright::{Parsed, types::ChatCompletion};
    /// # fn example<City>(answer: &Parsed<ChatCompletion, City>) {
    /// println!("request {:?}", answer.answer().request_id());
    /// # }
    /// ```
    pub fn answer(&self) -> &Response<A> {
        &self.answer
    }
}

impl<A, T> Deref for Parsed<A, T> {
    type Target = Response<A>;

    fn deref(&self) -> &Response<A> {
        &self.answer
    }
}
