"""The meter against the real Prometheus that asks who is there, on TLS."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prometheus.real_servers import free_port, needs_servers, program
from tuneoff.meter import MeterError
from tuneoff_meters.prometheus.meter import PrometheusApi, PrometheusOptions, authorization

pytestmark = [
    pytest.mark.slow,
    needs_servers,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="not installed: openssl"),
]

PASSWORD = "test"
HASH = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"  # bcrypt of it, from the server's documentation


@contextmanager
def guarded(folder: Path, key: Path, certificate: Path) -> Iterator[int]:
    """Yield the port of a server that lets in one user alone, on TLS."""
    tls = {"cert_file": str(certificate), "key_file": str(key)}
    (folder / "web.yml").write_text(json.dumps({"basic_auth_users": {"admin": HASH}, "tls_server_config": tls}))
    (folder / "prometheus.yml").write_text("{}")
    port = free_port()
    files = [
        f"--config.file={folder}/prometheus.yml",
        f"--web.config.file={folder}/web.yml",
        f"--storage.tsdb.path={folder}/data",
    ]
    with program(["prometheus", *files, f"--web.listen-address=127.0.0.1:{port}"], folder / "log.txt", port):
        yield port


def refusal(url: str, header: str) -> str:
    with pytest.raises(MeterError) as caught:
        PrometheusApi(url, authorization=header).series("vector(1)")
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def test_a_user_with_the_password_is_let_in_and_nobody_else_and_the_certificate_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_PASSWORD", PASSWORD)
    options = PrometheusOptions(username="admin", password_variable="THE_PASSWORD")
    header = authorization(options)
    monkeypatch.setenv("THE_PASSWORD", "wrong")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    named = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *named], check=True, capture_output=True)
    with guarded(tmp_path, key, certificate) as port:
        url = f"https://127.0.0.1:{port}"
        assert "for an authority of your own export SSL_CERT_FILE=FILE" in refusal(url, header)
        assert "Client sent an HTTP request to an HTTPS server" in refusal(url.replace("https", "http"), header)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert len(PrometheusApi(url, authorization=header).series("vector(1)")) == 1
        for other in ("", authorization(options), "Bearer token"):
            text = refusal(url, other)
            assert "(HTTP 401): access is denied; see `token_variable`, and `username` with `password_variable`" in text
