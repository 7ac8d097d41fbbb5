//! TLS to the cluster: trust the configured authorities, show our certificate if there is one.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    crypto::CryptoProvider,
};

use crate::config::{HostVerification, TlsConfig};

/// The error says which file is at fault.
pub(crate) fn client_config(config: &TlsConfig) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(config, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let client = match &config.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let at_fault = |error: &dyn std::fmt::Display| format!("{}: {error}", identity.key_file.display());
            let chain = certificates(&identity.cert_file)?;
            let key = PrivateKeyDer::from_pem_file(&identity.key_file).map_err(|error| at_fault(&error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| at_fault(&error))?
        }
    };
    Ok(Arc::new(client))
}

fn verifier(config: &TlsConfig, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let at_fault = |error: &dyn std::fmt::Display| format!("{}: {error}", config.ca_file.display());
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&config.ca_file)? {
        roots.add(certificate).map_err(|error| at_fault(&error))?;
    }
    let chain_and_name = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| at_fault(&error))?;
    Ok(match config.host_verification {
        HostVerification::ChainAndName => chain_and_name,
        HostVerification::ChainOnly => Arc::new(ChainOnly { chain_and_name }),
    })
}

fn certificates(file: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>();
    let certificates = read().map_err(|error| format!("{}: {error}", file.display()))?;
    if certificates.is_empty() {
        return Err(format!("{}: has no certificate", file.display()));
    }
    Ok(certificates)
}

/// Verifies everything about a certificate but its name.
#[derive(Debug)]
struct ChainOnly {
    chain_and_name: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chain_and_name.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked last, after the chain was verified.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain_and_name.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain_and_name.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain_and_name.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
