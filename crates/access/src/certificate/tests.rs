use std::process::Command;

use proptest::prelude::*;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue, KeyPair, SanType,
};

use super::*;

/// A certificate with these parts of its subject and these alternative names.
fn certificate(subject: &[(DnType, &str)], names: Vec<SanType>) -> Vec<u8> {
    let subject = subject.iter().map(|(kind, text)| (kind.clone(), DnValue::from(*text)));
    build(subject.collect(), names, Vec::new())
}

fn build(
    subject: Vec<(DnType, DnValue)>,
    names: Vec<SanType>,
    extensions: Vec<CustomExtension>,
) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, text) in subject {
        params.distinguished_name.push(kind, text);
    }
    params.subject_alt_names = names;
    params.custom_extensions = extensions;
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

fn email(text: &str) -> SanType {
    SanType::Rfc822Name(text.try_into().unwrap())
}

#[test]
fn each_part_names_the_user() {
    let names = vec![dns("pump-7.example"), uri("urn:dev:7"), email("p7@example")];
    let der = certificate(&[(DnType::CommonName, "pump 7"), (DnType::CountryName, "NL")], names);
    for (name, expected) in [
        (CertificateName::Cn, "pump 7"),
        (CertificateName::SanUri, "urn:dev:7"),
        (CertificateName::SanDns, "pump-7.example"),
        (CertificateName::SanEmail, "p7@example"),
    ] {
        assert_eq!(name.of(&der).as_deref(), Ok(expected), "{name:?}");
    }
    let subject = CertificateName::Subject.of(&der).unwrap();
    assert!(["CN=pump 7,C=NL", "C=NL,CN=pump 7"].contains(&&*subject), "{subject}");
}

#[test]
fn names_that_are_missing_or_ambiguous_are_none() {
    let none = certificate(&[(DnType::CountryName, "NL")], Vec::new());
    let empty = certificate(&[(DnType::CommonName, "")], Vec::new());
    let nothing = certificate(&[], Vec::new());
    for name in [
        CertificateName::Cn,
        CertificateName::SanUri,
        CertificateName::SanDns,
        CertificateName::SanEmail,
    ] {
        assert_eq!(name.of(&none), Err(CertificateError::Missing(name)));
    }
    assert_eq!(CertificateName::Cn.of(&empty), Err(CertificateError::Missing(CertificateName::Cn)));
    let subject = CertificateName::Subject;
    assert_eq!(subject.of(&nothing), Err(CertificateError::Missing(subject)));
    let both = certificate(&[], vec![uri("a"), uri("b"), dns("c"), email("d"), email("d")]);
    for name in [CertificateName::SanUri, CertificateName::SanEmail] {
        assert_eq!(name.of(&both), Err(CertificateError::Ambiguous(name)));
    }
    assert_eq!(CertificateName::SanDns.of(&both).as_deref(), Ok("c"));
}

/// The encoding of a subject with two common names, of which one would be taken.
#[test]
fn two_common_names_are_ambiguous() {
    let der = certificate(
        &[(DnType::CommonName, "victim"), (DnType::OrganizationName, "attack")],
        Vec::new(),
    );
    // The organisation becomes a common name: 2.5.4.10 to 2.5.4.3.
    let organisation = [0x06, 0x03, 0x55, 0x04, 0x0a];
    let mut changed = der.clone();
    let at: Vec<usize> = (0..der.len() - 5).filter(|&at| der[at..at + 5] == organisation).collect();
    assert!(!at.is_empty());
    for at in at {
        changed[at + 4] = 0x03;
    }
    let name = CertificateName::Cn;
    assert_eq!(name.of(&der).as_deref(), Ok("victim"));
    assert_eq!(name.of(&changed), Err(CertificateError::Ambiguous(name)));
}

#[test]
fn control_characters_and_other_encodings_are_refused() {
    for text in ["victim\0.attacker", "a\nb", "\u{7f}", "x\u{85}"] {
        let der = certificate(&[(DnType::CommonName, text)], Vec::new());
        let name = CertificateName::Cn;
        assert_eq!(name.of(&der), Err(CertificateError::Characters(name)), "{text:?}");
        let name = CertificateName::Subject;
        if text.is_ascii() {
            assert_eq!(name.of(&der), Err(CertificateError::Characters(name)), "{text:?}");
        }
    }
    let nul = certificate(&[], vec![dns("victim\0.attacker")]);
    let name = CertificateName::SanDns;
    assert_eq!(name.of(&nul), Err(CertificateError::Characters(name)));
    let wide = DnValue::BmpString("pump".try_into().unwrap());
    let der = build(vec![(DnType::CommonName, wide)], Vec::new(), Vec::new());
    let name = CertificateName::Cn;
    assert_eq!(name.of(&der), Err(CertificateError::Characters(name)));
    // SEQUENCE { [2] FF }: a DNS name of one byte that is no text, beside a good one.
    for bytes in
        [&[0x30, 0x03, 0x82, 0x01, 0xff][..], &[0x30, 0x06, 0x82, 0x01, 0xff, 0x82, 1, b'a']]
    {
        let names = CustomExtension::from_oid_content(&[2, 5, 29, 17], bytes.to_vec());
        let der = build(Vec::new(), Vec::new(), vec![names]);
        assert!(CertificateName::SanDns.of(&der).is_err(), "{bytes:?}");
    }
    assert_eq!(CertificateName::Cn.of(b"no certificate"), Err(CertificateError::Malformed));
}

#[test]
fn the_subject_is_written_as_openssl_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("certificate.der");
    let unknown = DnType::CustomDnType(vec![1, 2, 3, 4]);
    let subjects: [&[(DnType, &str)]; 4] = [
        &[(DnType::CountryName, "NL"), (DnType::OrganizationName, "A, B + \"C\" <D>; E\\F")],
        &[(DnType::CommonName, " #both ends "), (DnType::LocalityName, "#x")],
        &[(DnType::CommonName, "Jürgen"), (DnType::OrganizationalUnitName, "eins=zwei/drei")],
        &[(DnType::StateOrProvinceName, "x"), (unknown, "y")],
    ];
    for subject in subjects {
        let der = certificate(subject, Vec::new());
        std::fs::write(&path, &der).unwrap();
        let shown = Command::new("openssl")
            .args(["x509", "-inform", "DER", "-noout", "-subject", "-nameopt", "RFC2253", "-in"])
            .arg(&path)
            .output();
        let Ok(shown) = shown else { return }; // Not on every machine.
        let shown = String::from_utf8(shown.stdout).unwrap();
        let shown = shown.trim_end_matches('\n').strip_prefix("subject=").unwrap().to_owned();
        assert_eq!(CertificateName::Subject.of(&der), Ok(shown));
    }
}

proptest! {
    #[test]
    fn damaged_certificates_are_safe(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let names = vec![uri("urn:dev:7"), dns("a"), email("b")];
        let mut der = certificate(&[(DnType::CommonName, "pump")], names);
        let at = at.index(der.len());
        der[at] = byte;
        for name in [CertificateName::Cn, CertificateName::Subject, CertificateName::SanUri] {
            if let Ok(name) = name.of(&der) {
                prop_assert!(!name.is_empty() && !name.chars().any(char::is_control));
            }
            let _ = name.of(&der[..at]);
        }
    }
}

#[test]
fn a_name_that_a_proxy_has_read_is_checked_as_one_in_a_certificate() {
    let of = |name: &[u8]| CertificateName::Cn.of_text(name);
    assert_eq!(of("Pumpe 7, Süd".as_bytes()).unwrap(), "Pumpe 7, Süd");
    assert_eq!(of(b""), Err(CertificateError::Missing(CertificateName::Cn)));
    for name in [&b"a\0b"[..], b"a\n", b"\xff", b"\xc3", b"\x7f", "\u{85}".as_bytes()] {
        assert_eq!(of(name), Err(CertificateError::Characters(CertificateName::Cn)), "{name:?}");
    }
}
