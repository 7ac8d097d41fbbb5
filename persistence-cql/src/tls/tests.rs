//! Handshakes with nodes whose certificates are right and wrong.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::*;
use crate::config::Identity;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for this name, with its key.
fn issue(authority: &Authority, name: &str) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().der().clone(), key)
}

/// What the client is given: the authority it trusts, and its own certificate.
struct Files {
    folder: TempDir,
}

impl Files {
    fn write(authority: &Authority, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        std::fs::write(folder.path().join("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        Self { folder }
    }

    fn config(&self, host_verification: HostVerification) -> TlsConfig {
        TlsConfig { ca_file: self.folder.path().join("ca.pem"), identity: None, host_verification }
    }

    fn identity(&self) -> Identity {
        let folder: &Path = self.folder.path();
        Identity { cert_file: folder.join("cert.pem"), key_file: folder.join("key.pem") }
    }
}

/// A node that asks for certificates of the same authority, if any.
fn node(authority: &Authority, name: &str, asks_from: Option<&Authority>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let (certificate, key) = issue(authority, name);
    let builder = match asks_from {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// A handshake with a node that is dialled as 127.0.0.1.
fn handshake(config: &TlsConfig, node: Arc<ServerConfig>) -> Result<(), Error> {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut client = ClientConnection::new(client_config(config).unwrap(), name).unwrap();
    let mut server = ServerConnection::new(node).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn a_node_is_trusted_by_its_chain_and_its_name() {
    let (ours, theirs) = (authority(), authority());
    let config = Files::write(&ours, "client");
    let strict = config.config(HostVerification::ChainAndName);
    assert_eq!(handshake(&strict, node(&ours, "127.0.0.1", None)), Ok(()));
    assert!(handshake(&strict, node(&ours, "10.0.0.1", None)).is_err());
    assert!(handshake(&strict, node(&theirs, "127.0.0.1", None)).is_err());
}

#[test]
fn without_names_the_chain_is_still_checked() {
    let (ours, theirs) = (authority(), authority());
    let files = Files::write(&ours, "client");
    let lenient = files.config(HostVerification::ChainOnly);
    assert_eq!(handshake(&lenient, node(&ours, "10.0.0.1", None)), Ok(()));
    assert!(handshake(&lenient, node(&theirs, "127.0.0.1", None)).is_err());
}

#[test]
fn a_node_that_asks_is_shown_our_certificate() {
    let ours = authority();
    let files = Files::write(&ours, "client");
    let mut config = files.config(HostVerification::ChainAndName);
    assert!(handshake(&config, node(&ours, "127.0.0.1", Some(&ours))).is_err());
    config.identity = Some(files.identity());
    assert_eq!(handshake(&config, node(&ours, "127.0.0.1", Some(&ours))), Ok(()));
}

#[test]
fn a_file_at_fault_is_named() {
    let files = Files::write(&authority(), "client");
    let mut config = files.config(HostVerification::ChainAndName);
    config.ca_file = files.folder.path().join("key.pem");
    assert!(client_config(&config).unwrap_err().contains("key.pem"));
    config.ca_file = files.folder.path().join("none.pem");
    assert!(client_config(&config).unwrap_err().contains("none.pem"));
}
