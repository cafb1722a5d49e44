package tools

import (
	"fmt"
	"net"
	"net/netip"
)

// addressError says why an address was not connected to.
type addressError struct {
	addr netip.AddrPort
	why  string
}

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s is %s and is not allowed; whoever runs this console can allow it by name", e.addr, e.why)
}

// notPublic lists address blocks that reach something other than the public
// internet (IANA special-purpose registries, RFC 6890).
var notPublic = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this host itself"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-internal address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a test-network address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/127"), "a loopback address"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a translated address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translated address"},
	{netip.MustParsePrefix("100::/64"), "a reserved address"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"},
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("2002::/16"), "a translated address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("5f00::/16"), "a reserved address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a private address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

// metadata are the addresses at which clouds hand credentials to anyone who
// asks. A wide prefix in Allow does not open them; naming the address does.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // AWS, GCP, Azure and others
	netip.MustParseAddr("169.254.170.2"):   true, // AWS ECS
	netip.MustParseAddr("168.63.129.16"):   true, // Azure
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd20:ce::254"):    true, // GCP
}

// reach checks one resolved address. It runs when connecting, after name
// resolution, so that a name which changes its answer gains nothing.
func (w *World) reach(to netip.AddrPort) error {
	ip := to.Addr().Unmap().WithZone("")
	to = netip.AddrPortFrom(ip, to.Port())
	if w.isOwn(to) {
		return &addressError{to, "this console's own"}
	}
	if metadata[ip] && !w.allows(ip, ip.BitLen()) {
		return &addressError{to, "a cloud metadata address"}
	}
	if w.allows(ip, 0) {
		return nil
	}
	for _, block := range notPublic {
		if block.prefix.Contains(ip) {
			return &addressError{to, block.why}
		}
	}
	return nil
}

// allows reports whether a prefix of at least bits length in Allow holds ip.
func (w *World) allows(ip netip.Addr, bits int) bool {
	for _, p := range w.Allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Bits() >= bits && p.Contains(ip) {
			return true
		}
	}
	return false
}

// isOwn reports whether to is a listener of this console. One that listens on
// every address is reached through any address of this machine.
func (w *World) isOwn(to netip.AddrPort) bool {
	for _, own := range w.Own {
		ip := own.Addr().Unmap().WithZone("")
		if own.Port() != to.Port() {
			continue
		}
		if ip == to.Addr() || ip.IsUnspecified() && isLocal(to.Addr()) {
			return true
		}
		if to.Addr().IsUnspecified() && (ip.IsLoopback() || ip.IsUnspecified()) {
			return true
		}
	}
	return false
}

func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // cannot tell: refuse rather than call ourselves
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip {
			return true
		}
	}
	return false
}

// reachText checks the address a dialer is about to connect to.
func (w *World) reachText(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read address %q: %w", address, err)
	}
	return w.reach(to)
}
