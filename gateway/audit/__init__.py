"""Checks of the promise from outside: certificates by counting."""

from gateway.audit.certify import Certificate, ClassCertificate, certify

__all__ = ["Certificate", "ClassCertificate", "certify"]
