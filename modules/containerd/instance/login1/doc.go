// Package login1 is a stand-in for a D-Bus system bus with systemd-logind on it. It
// answers what a kubelet asks for its graceful node shutdown (kubernetes
// pkg/kubelet/nodeshutdown/systemd), and nothing else:
//
//   - the property InhibitDelayMaxUSec of org.freedesktop.login1.Manager,
//   - its method Inhibit, for a delay lock, which is a file descriptor,
//   - its signal PrepareForShutdown,
//   - Hello, AddMatch and RemoveMatch of the bus.
//
// Every connection gets the signal, whatever it asked for with AddMatch. The wire format
// is github.com/godbus/dbus's. The reference is org.freedesktop.login1(5) and the D-Bus
// Specification.
package login1
