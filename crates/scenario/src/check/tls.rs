//! Encryption, and the certificates of the clients, checked.

use std::path::Path;

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::raw::{RawTestCa, RawTls};
use crate::template::Template;
use crate::tls::{Certificates, TestCa, TlsOptions};

impl Checker<'_> {
    pub(super) fn tls(&self, raw: &Spanned<RawTls>) -> Checked<TlsOptions> {
        let tls = raw.get_ref();
        let alone = match (&tls.cert, &tls.key) {
            (Some(cert), None) => Some((cert, "this certificate has no key: add key = \"FILE\"")),
            (None, Some(key)) => Some((key, "this key has no certificate: add cert = \"FILE\"")),
            _ => None,
        };
        if let Some((path, title)) = alone {
            return Err(self.error(path.span(), title));
        }
        if let (Some(ca), Some(_)) = (&tls.test_ca, &tls.cert) {
            return Err(self
                .error(ca.span(), "certificates come from files or from a CA for tests")
                .label("remove 'test_ca', or 'cert' and 'key'"));
        }
        if let (true, Some(ca)) = (tls.insecure, &tls.ca) {
            return Err(self
                .error(ca.span(), "insecure = true turns verification off")
                .label("remove one of them"));
        }
        let text = |text: &Spanned<String>| match text.get_ref().as_str() {
            "" => Err(self.error(text.span(), "this value is empty")),
            text => Ok(text.to_owned()),
        };
        let options = TlsOptions {
            ca: tls.ca.as_ref().map(|path| self.source.path(path.get_ref())),
            cert: tls.cert.as_ref().map(|path| self.file(path)).transpose()?,
            key: tls.key.as_ref().map(|path| self.file(path)).transpose()?,
            test_ca: tls.test_ca.as_ref().map(|ca| self.test_ca(ca)).transpose()?,
            insecure: tls.insecure,
            server_name: tls.server_name.as_ref().map(text).transpose()?,
            alpn: tls.alpn.iter().map(text).collect::<Checked<_>>()?,
            resume: tls.resume.as_ref().is_some_and(|resume| *resume.get_ref()),
            certificates: Certificates::default(),
        };
        match &tls.resume {
            Some(resume) if options.resume && options.is_per_client() => {
                Err(self.error(resume.span(), TlsOptions::NOT_RESUMED).label("remove it"))
            }
            _ => Ok(options),
        }
    }

    /// The name of a file that may differ from client to client.
    fn file(&self, text: &Spanned<String>) -> Checked<Template> {
        self.template(text)?;
        let path = self.source.path(Path::new(text.get_ref()));
        Template::parse(&path.display().to_string()).map_err(|title| self.error(text.span(), title))
    }

    fn test_ca(&self, raw: &Spanned<RawTestCa>) -> Checked<TestCa> {
        let RawTestCa { cert, key, common_name } = raw.get_ref();
        let common_name = common_name.as_ref().map(|name| self.template(name)).transpose()?;
        let [cert, key] = [cert, key].map(|path| self.source.path(path.get_ref()));
        TestCa::read(&cert, &key, common_name).map_err(|title| self.error(raw.span(), title))
    }
}
