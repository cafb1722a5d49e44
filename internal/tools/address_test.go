package tools

import (
	"net"
	"net/netip"
	"testing"
)

func TestReach_OnlyPublicAddressesUnlessAllowed(t *testing.T) {
	closed := &World{}
	for _, bad := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "0.0.0.0:80", "[::]:80", "10.1.2.3:80", "172.16.0.1:80", "192.168.1.1:80",
		"169.254.169.254:80", "168.63.129.16:80", "100.64.0.1:80", "100.100.100.200:80", "224.0.0.1:80", "255.255.255.255:80", "[fe80::1]:80",
		"[fc00::1]:80", "[fd00:ec2::254]:80", "[::ffff:127.0.0.1]:80", "[::ffff:10.0.0.1]:80", "[64:ff9b::7f00:1]:80", "[2002:7f00:1::]:80", "[ff02::1]:80"} {
		if err := closed.reach(netip.MustParseAddrPort(bad)); err == nil {
			t.Errorf("reach(%s) allowed it", bad)
		}
	}
	for _, fine := range []string{"93.184.216.34:443", "[2606:2800:220:1::1]:443", "8.8.8.8:53"} {
		if err := closed.reach(netip.MustParseAddrPort(fine)); err != nil {
			t.Errorf("reach(%s): %v", fine, err)
		}
	}
}

func TestReach_AllowOpensButNotMetadataNorOwnListeners(t *testing.T) {
	w := &World{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("::ffff:10.0.0.0/104")},
		Own:   []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("0.0.0.0:9090")},
	}
	for addr, ok := range map[string]bool{
		"127.0.0.1:80": true, "10.0.0.9:80": true, "169.254.1.1:80": true, "169.254.169.254:80": false,
		"127.0.0.1:8080": false, "[::ffff:127.0.0.1]:8080": false, "127.0.0.1:9090": false, "127.0.0.2:9090": false, "127.0.0.2:8080": true,
	} {
		if err := w.reach(netip.MustParseAddrPort(addr)); (err == nil) != ok {
			t.Errorf("reach(%s) = %v, want allowed %v", addr, err, ok)
		}
	}
	w.Allow = append(w.Allow, netip.MustParsePrefix("169.254.169.254/32"))
	if err := w.reach(netip.MustParseAddrPort("169.254.169.254:80")); err != nil {
		t.Errorf("a metadata address that is named: %v", err)
	}
}

func TestReach_OwnListenerOnAllAddressesIsRefusedOnEachOfThem(t *testing.T) {
	w := &World{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Own: []netip.AddrPort{netip.MustParseAddrPort("[::]:9090")}}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		p := netip.MustParsePrefix(a.String())
		if err := w.reach(netip.AddrPortFrom(p.Addr(), 9090)); err == nil {
			t.Errorf("own listener reached through %s", p.Addr())
		}
	}
}
