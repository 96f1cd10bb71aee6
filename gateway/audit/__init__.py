"""Checks of the promise from outside: certificates by counting."""

from gateway.audit.certify import Certificate, ClassCertificate, certify
from gateway.audit.report import certificate_report, show_certificate

__all__ = ["Certificate", "ClassCertificate", "certificate_report", "certify", "show_certificate"]
