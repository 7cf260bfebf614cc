use super::*;

/// A header of version 2.
fn binary(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap();
    [SIGNATURE, &[command, family], &len.to_be_bytes(), body].concat()
}

/// The addresses 192.0.2.7 and 10.0.0.1 with the ports 40000 and 1883, and what follows them.
fn v4(extras: &[u8]) -> Vec<u8> {
    [&[192, 0, 2, 7, 10, 0, 0, 1, 0x9c, 0x40, 0x07, 0x5b], extras].concat()
}

fn v6() -> Vec<u8> {
    let (client, proxy) = ("2001:db8::7".parse().unwrap(), Ipv6Addr::LOCALHOST);
    let addresses = [client, proxy].map(|address: Ipv6Addr| address.octets()).concat();
    [&addresses[..], &[0x9c, 0x40, 0x07, 0x5b]].concat()
}

/// What a stream that begins with a header has: its client, and the bytes behind it.
fn whole(bytes: &[u8]) -> Result<(Option<String>, &[u8]), String> {
    let header = ProxyHeader::parse(bytes).map_err(|error| error.to_string())?;
    let header = header.ok_or("incomplete")?;
    Ok((header.client.map(|client| client.to_string()), &bytes[header.len..]))
}

fn is_refused(bytes: &[u8], words: &str) {
    let refused = whole(bytes).unwrap_err();
    assert!(refused.contains(words), "{}: {refused}", bytes.escape_ascii());
}

#[test]
fn both_versions_tell_the_address_of_the_client() {
    for (line, client) in [
        ("TCP4 192.0.2.7 10.0.0.1 40000 1883", "192.0.2.7:40000"),
        ("TCP4 255.255.255.255 255.255.255.255 65535 65535", "255.255.255.255:65535"),
        ("TCP4 0.0.0.0 10.0.0.1 0 0", "0.0.0.0:0"),
        ("TCP6 2001:db8::7 ::1 40000 1883", "[2001:db8::7]:40000"),
        ("TCP6 2001:DB8::7 ::1 40000 1883", "[2001:db8::7]:40000"),
        ("TCP6 ::ffff:192.0.2.7 ::1 40000 1883", "[::ffff:192.0.2.7]:40000"),
    ] {
        let bytes = format!("PROXY {line}\r\nrest");
        assert_eq!(whole(bytes.as_bytes()), Ok((Some(client.to_owned()), &b"rest"[..])));
    }
    for (family, body, client) in [
        (0x11, v4(&[]), "192.0.2.7:40000"),
        (0x12, v4(&[]), "192.0.2.7:40000"),
        (0x11, v4(&[0x02, 0, 1, b'x', 0xe0, 0, 0]), "192.0.2.7:40000"),
        (0x21, v6(), "[2001:db8::7]:40000"),
        (0x22, v6(), "[2001:db8::7]:40000"),
    ] {
        let bytes = [binary(0x21, family, &body), b"rest".to_vec()].concat();
        assert_eq!(whole(&bytes), Ok((Some(client.to_owned()), &b"rest"[..])));
    }
}

#[test]
fn a_proxy_that_names_no_client_speaks_for_itself() {
    for line in ["UNKNOWN", "UNKNOWN ", "UNKNOWN ffff:f...f:ffff ffff 65535 65535", "UNKNOWN \r\0"]
    {
        assert_eq!(whole(format!("PROXY {line}\r\nrest").as_bytes()), Ok((None, &b"rest"[..])));
    }
    for (command, family, body) in [
        (0x20, 0x00, vec![]),
        (0x20, 0x11, v4(&[])),
        // A family without meaning, and a body without a form.
        (0x20, 0xff, vec![7; 50]),
        (0x21, 0x00, vec![7; 50]),
        (0x21, 0x31, vec![0; UNIX_BYTES]),
    ] {
        assert_eq!(whole(&binary(command, family, &body)), Ok((None, &b""[..])));
    }
}

#[test]
fn malformed_lines_are_refused() {
    for line in [
        "TCP4 192.0.2.7 10.0.0.1 40000",
        "TCP4 192.0.2.7 10.0.0.1 40000 1883 ",
        "TCP4 192.0.2.7 10.0.0.1 40000 1883 x",
        "TCP4  192.0.2.7 10.0.0.1 40000 1883",
        "TCP4 192.0.2.07 10.0.0.1 40000 1883",
        "TCP4 192.0.2.7 10.0.0 40000 1883",
        "TCP4 192.0.2.7 10.0.0.1 040000 1883",
        "TCP4 192.0.2.7 10.0.0.1 +40000 1883",
        "TCP4 192.0.2.7 10.0.0.1 65536 1883",
        "TCP4 192.0.2.7 10.0.0.1 40000 65536",
        "TCP4 192.0.2.7 10.0.0.1 40000 ",
        "TCP4 ::1 ::1 40000 1883",
        "TCP6 192.0.2.7 10.0.0.1 40000 1883",
        "TCP6 fe80::1%eth0 ::1 40000 1883",
        "TCP5 192.0.2.7 10.0.0.1 40000 1883",
        "tcp4 192.0.2.7 10.0.0.1 40000 1883",
        "UDP4 192.0.2.7 10.0.0.1 40000 1883",
        "UNKNOWNX",
        "",
        " TCP4 192.0.2.7 10.0.0.1 40000 1883",
    ] {
        is_refused(format!("PROXY {line}\r\n").as_bytes(), "malformed");
    }
    is_refused(b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 1883\n", "CR and LF");
    is_refused(b"PROXY \n", "CR and LF");
    is_refused(b"PROXY UNKNOWN \xff", "incomplete");
    let long = |len: usize| format!("PROXY UNKNOWN {}\r\n", "x".repeat(len - 16)).into_bytes();
    assert!(whole(&long(LINE_BYTES_MAX)).is_ok());
    is_refused(&long(LINE_BYTES_MAX + 1), "too long");
    is_refused(&long(LINE_BYTES_MAX + 1)[..LINE_BYTES_MAX], "too long");
}

#[test]
fn malformed_binary_headers_are_refused() {
    for (bytes, words) in [
        (binary(0x11, 0x11, &v4(&[])), "version or the command"),
        (binary(0x22, 0x11, &v4(&[])), "version or the command"),
        (binary(0x31, 0x11, &v4(&[])), "version or the command"),
        (binary(0x21, 0x10, &v4(&[])), "family"),
        (binary(0x21, 0x13, &v4(&[])), "family"),
        (binary(0x21, 0x41, &v4(&[])), "family"),
        (binary(0x21, 0x11, &v4(&[])[..11]), "no room"),
        (binary(0x21, 0x21, &v4(&[])), "no room"),
        (binary(0x21, 0x31, &[0; UNIX_BYTES - 1]), "no room"),
        (binary(0x21, 0x11, &v4(&[0x02])), "beyond its end"),
        (binary(0x21, 0x11, &v4(&[0x02, 0])), "beyond its end"),
        (binary(0x21, 0x11, &v4(&[0x02, 0, 2, b'x'])), "beyond its end"),
        (binary(0x21, 0x11, &v4(&[0x02, 0xff, 0xff, b'x'])), "beyond its end"),
        (binary(0x21, 0x11, &v4(&[CRC32C, 0, 4, 0, 0, 0, 0])), "checksum is wrong"),
        (binary(0x21, 0x11, &v4(&[CRC32C, 0, 3, 0, 0, 0])), "4 bytes"),
        (binary(0x21, 0x11, &v4(&[CRC32C, 0, 4, 0, 0, 0, 0].repeat(2))), "there twice"),
        (binary(0x20, 0x00, &vec![0; UNIX_BYTES + EXTRAS_BYTES_MAX + 1]), "too long"),
    ] {
        is_refused(&bytes, words);
    }
    // The length alone is enough.
    let long = binary(0x20, 0x00, &vec![0; UNIX_BYTES + EXTRAS_BYTES_MAX + 1]);
    is_refused(&long[..START_BYTES], "too long");
    let longest = binary(0x20, 0x00, &vec![0; UNIX_BYTES + EXTRAS_BYTES_MAX]);
    assert_eq!((longest.len(), whole(&longest)), (HEADER_BYTES_MAX, Ok((None, &b""[..]))));
}

#[test]
fn a_checksum_that_is_right_is_accepted() {
    assert_eq!(crc32c_without(b"123456789", 9), 0xe306_9283, "the check value of CRC-32C");
    let mut header =
        binary(0x21, 0x11, &v4(&[0x02, 0, 1, b'x', CRC32C, 0, 4, 0, 0, 0, 0, 4, 0, 0]));
    let at = header.len() - 3 - 4;
    let crc = crc32c_without(&header, at);
    header[at..at + 4].copy_from_slice(&crc.to_be_bytes());
    assert!(whole(&header).is_ok());
    header[16] ^= 1;
    is_refused(&header, "checksum is wrong");
}

#[test]
fn other_protocols_are_known_by_their_first_byte_and_parts_of_a_header_are_awaited() {
    for bytes in [&b"\x10\x0e\0\x04MQTT"[..], b"\x16\x03\x01", b"GET /", b"PROXX", b"\r\n\r\n\r"] {
        is_refused(bytes, "does not begin with one");
    }
    let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 40000 1883\r\n";
    for header in [line.to_vec(), binary(0x21, 0x21, &v6())] {
        for len in 0..header.len() {
            assert_eq!(ProxyHeader::parse(&header[..len]), Ok(None), "{len}");
        }
    }
}

/// What a proxy says of TLS.
fn tls(flags: u8, verified: u32, values: &[(u8, &[u8])]) -> Vec<u8> {
    let mut body = [&[flags][..], &verified.to_be_bytes()].concat();
    values.iter().for_each(|(kind, value)| body.extend(value_of(*kind, value)));
    value_of(TLS, &body)
}

fn value_of(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind][..], &u16::try_from(value.len()).unwrap().to_be_bytes(), value].concat()
}

/// The name in a header of version 2 with these extras.
fn name_in(extras: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let bytes = binary(0x21, 0x11, &v4(extras));
    let header = ProxyHeader::parse(&bytes).map_err(|error| error.to_string())?;
    Ok(header.ok_or("incomplete")?.certificate_name.map(<[u8]>::to_vec))
}

#[test]
fn a_name_counts_if_its_certificate_was_shown_on_this_connection_and_verified() {
    let name = (COMMON_NAME, &b"pump-7"[..]);
    let version = (0x21, &b"TLSv1.3"[..]);
    let told = Ok(Some(b"pump-7".to_vec()));
    assert_eq!(name_in(&tls(3, 0, &[version, name])), told);
    assert_eq!(name_in(&tls(7, 0, &[name, version])), told);
    let between = [value_of(0x02, b"host"), tls(0xff, 0, &[name]), value_of(0x05, b"id")].concat();
    assert_eq!(name_in(&between), told);
    // Whatever it is: that it is text is for others to say.
    assert_eq!(name_in(&tls(3, 0, &[(COMMON_NAME, b"\xff\0")])), Ok(Some(b"\xff\0".to_vec())));
    assert_eq!(name_in(&tls(3, 0, &[(COMMON_NAME, b"")])), Ok(Some(Vec::new())));
    for (flags, verified) in [
        // Without TLS, without a certificate, and with one of an earlier connection.
        (0, 0),
        (1, 0),
        (2, 0),
        (5, 0),
        // With one that the proxy has not accepted.
        (3, 1),
        (7, 10),
        (3, 0x0100_0000),
        (3, u32::MAX),
    ] {
        assert_eq!(name_in(&tls(flags, verified, &[name])), Ok(None), "{flags} {verified}");
    }
    assert_eq!(name_in(&tls(3, 0, &[version])), Ok(None));
    // A proxy that speaks for itself, or tells no address, has no client that a name is of.
    for (command, family) in [(0x20, 0x11), (0x21, 0x00)] {
        let bytes = binary(command, family, &tls(3, 0, &[name]));
        assert_eq!(ProxyHeader::parse(&bytes).unwrap().unwrap().certificate_name, None);
    }
}

#[test]
fn what_is_said_of_tls_and_is_malformed_refuses_the_header() {
    let name = (COMMON_NAME, &b"pump-7"[..]);
    let long = vec![b'x'; NAME_BYTES_MAX + 1];
    let mut cut = tls(3, 0, &[name]);
    let last = cut.len() - 1;
    cut.truncate(last);
    cut[2] -= 1;
    for (extras, words) in [
        (value_of(TLS, &[3, 0, 0, 0]), "too short"),
        (value_of(TLS, &[]), "too short"),
        (cut, "beyond its end"),
        (value_of(TLS, &[3, 0, 0, 0, 0, COMMON_NAME, 0]), "beyond its end"),
        (value_of(TLS, &[3, 0, 0, 0, 0, COMMON_NAME, 0xff, 0xff]), "beyond its end"),
        (tls(3, 0, &[name, (COMMON_NAME, b"admin")]), "two names"),
        (tls(1, 1, &[name, name]), "two names"),
        ([tls(3, 0, &[name]), tls(3, 0, &[])].concat(), "there twice"),
        (tls(3, 0, &[(COMMON_NAME, &long)]), "too long"),
    ] {
        let refused = name_in(&extras).unwrap_err();
        assert!(refused.contains(words), "{}: {refused}", extras.escape_ascii());
    }
    let longest = &long[..NAME_BYTES_MAX];
    assert_eq!(name_in(&tls(3, 0, &[(COMMON_NAME, longest)])), Ok(Some(longest.to_vec())));
}
