//! Base URLs: whatever somebody writes into a variable, it is refused or it is an address that stays what it is; no
//! path parameter leads anywhere but below it.
//!
//! An input is the base URL, a line end, and the parameter.

#![no_main]

use gatewright::fuzzing;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &str| -> Corpus {
    let Some((text, parameter)) = input.split_once('\n') else { return Corpus::Reject };
    let Ok((address, joined)) = fuzzing::base_url(text, parameter) else { return Corpus::Keep };
    assert!(!address.ends_with('/') && !address.contains(['?', '#', '\n', ' ']), "{address:?}");
    // A version is dropped once, as people write it; what is left may be a prefix of that name.
    if !address.ends_with("/v1") && !address.ends_with("/v1beta") {
        let again = fuzzing::base_url(&address, "x").expect("it was taken once");
        assert_eq!(again.0, address, "it stands for itself");
    }
    for url in joined {
        let rest = url.strip_prefix(&*address).expect("below the address");
        assert!(rest.starts_with("/v1"), "{url}");
        // Escaped, a byte becomes three; a letter of the address may, too.
        assert!(url.len() <= 64 + 3 * input.len() + address.len(), "{url}");
    }
    Corpus::Keep
});
