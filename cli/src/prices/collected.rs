//! The models imported from a list, and those omitted.

use std::collections::BTreeSet;

use gatewright::did_you_mean::suggestion;
use gatewright::visible::visible;
use gatewright_gateway::{ListedModel, PriceList, PricesOf, presets};

/// Maximum number of omitted models that are named.
const MAX_NAMED: usize = 50;
/// Maximum number of providers without a name of ours that are listed.
const MAX_PROVIDERS_NAMED: usize = 10;
/// Maximum number of models of all providers together.
const MAX_MODELS: usize = 100_000;
/// Longest id of a model.
const MAX_ID_LENGTH: usize = 256;

/// Which models are requested, and for whom.
#[derive(Debug, Default)]
pub(super) struct ModelFilter {
    /// By our names or by the list's. Empty: all that a configuration may name.
    pub(super) providers: Vec<String>,
    /// The upstream that the models are for, instead of their provider.
    pub(super) upstream: Option<String>,
}

/// A provider, with the list's name and ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListedProvider<'n> {
    pub(super) listed_as: &'n str,
    /// Our names: a provider with two protocols has two. Empty: there is none.
    pub(super) names: &'n [&'n str],
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) list: PriceList,
    wanted: ModelFilter,
    /// The names of all providers in the list, which may be requested.
    known: BTreeSet<String>,
    seen: usize,
    unnamed: BTreeSet<String>,
    of_unnamed: usize,
    without_price: usize,
    not_served: usize,
    left_out: Vec<String>,
    more_left_out: usize,
}

impl Collected {
    pub(super) fn new(wanted: ModelFilter) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Adds a model. `read`: none if the list has no price for it. Errors: there are too many.
    pub(super) fn add(
        &mut self,
        provider: ListedProvider<'_>,
        id: &str,
        read: Result<Option<ListedModel>, String>,
    ) -> Result<(), String> {
        self.seen += 1;
        if self.seen > MAX_MODELS {
            return Err(format!("it has more than {MAX_MODELS} models"));
        }
        let names = self.names_of(provider);
        if names.is_empty() {
            return Ok(());
        }
        let at = format!("{}: {id}", provider.listed_as);
        let is_id =
            !id.is_empty() && id.len() <= MAX_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_graphic());
        match read {
            Ok(_) if !is_id => {
                self.leave_out(format!("{at}: no request can name this model"));
            }
            Ok(Some(model)) => names.iter().for_each(|name| self.insert(name, id, &model, &at)),
            Ok(None) => self.without_price += 1,
            Err(why) => self.leave_out(format!("{at}: {why}")),
        }
        Ok(())
    }

    /// Records a model that is not paid by token, or of a kind that gateways don't serve.
    pub(super) fn not_served(&mut self, provider: ListedProvider<'_>) {
        if !self.names_of(provider).is_empty() {
            self.not_served += 1;
        }
    }

    /// Records an entry that can't be read at all.
    pub(super) fn leave_out(&mut self, what: String) {
        if self.left_out.len() < MAX_NAMED {
            self.left_out.push(what);
        } else {
            self.more_left_out += 1;
        }
    }

    /// Our requested names for a provider.
    fn names_of(&mut self, provider: ListedProvider<'_>) -> Vec<String> {
        let ListedProvider { listed_as, names } = provider;
        for name in names.iter().chain([&listed_as]) {
            if !self.known.contains(*name) {
                self.known.insert((*name).to_owned());
            }
        }
        let is_wanted = |name: &str| self.wanted.providers.iter().any(|wanted| wanted == name);
        if !self.wanted.providers.is_empty() {
            let all = is_wanted(listed_as);
            let mut names: Vec<String> =
                names.iter().filter(|name| all || is_wanted(name)).map(|name| (*name).to_owned()).collect();
            if names.is_empty() && all {
                names.push(listed_as.to_owned());
            }
            return names;
        }
        let is_preset = |name: &&&str| presets().iter().any(|preset| preset.name == **name);
        let names: Vec<String> = names.iter().filter(is_preset).map(|name| (*name).to_owned()).collect();
        if names.is_empty() {
            self.unnamed.insert(listed_as.to_owned());
            self.of_unnamed += 1;
        }
        names
    }

    fn insert(&mut self, name: &str, id: &str, model: &ListedModel, at: &str) {
        let of = match &self.wanted.upstream {
            Some(upstream) => PricesOf::Upstream(upstream),
            None => PricesOf::Provider(name),
        };
        let before = self.list.insert(of, id, model.clone());
        if let Some(before) = before.filter(|before| before != model) {
            // Entries are sorted by name, so that the first is always the same.
            self.list.insert(of, id, before);
            self.leave_out(format!("{at}: an earlier entry for {name:?} {id:?} differs"));
        }
    }

    /// Errors: a requested provider is not in the list.
    pub(super) fn check_wanted(&self) -> Result<(), String> {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        match self.wanted.providers.iter().find(|name| !self.known.contains(*name)) {
            Some(name) => Err(format!("it has no provider {name:?}{}", suggestion(name, &known))),
            None => Ok(()),
        }
    }

    /// Everything that the result omits, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> =
            self.left_out.iter().map(|what| visible(&format!("omitted: {what}")).into_owned()).collect();
        if self.more_left_out > 0 {
            notes.push(format!("omitted: {} more", self.more_left_out));
        }
        let models = |count: usize| format!("{count} {}", if count == 1 { "model" } else { "models" });
        if self.without_price > 0 {
            notes.push(format!("omitted: {} without a price", models(self.without_price)));
        }
        if self.not_served > 0 {
            notes
                .push(format!("omitted: {} of kinds that a gateway does not serve", models(self.not_served)));
        }
        if self.of_unnamed > 0 {
            let mut providers: Vec<&str> =
                self.unnamed.iter().take(MAX_PROVIDERS_NAMED).map(String::as_str).collect();
            if self.unnamed.len() > MAX_PROVIDERS_NAMED {
                providers.push("…");
            }
            notes.push(format!(
                "omitted: {} of providers that gatewright providers does not list ({}); import those of one provider for an \
                    upstream with --provider NAME --upstream NAME",
                models(self.of_unnamed),
                visible(&providers.join(", "))
            ));
        }
        notes
    }
}
