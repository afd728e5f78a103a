// Package login1 is a substitute for a D-Bus system bus with systemd-logind. It
// implements only the part that a kubelet needs for its graceful node shutdown
// (kubernetes pkg/kubelet/nodeshutdown/systemd):
//
//   - the property InhibitDelayMaxUSec of org.freedesktop.login1.Manager,
//   - its method Inhibit, for a delay lock, which is a file descriptor,
//   - its signal PrepareForShutdown,
//   - Hello, AddMatch and RemoveMatch of the bus.
//
// Every connection receives the signal, regardless of its AddMatch calls. The wire
// format is that of github.com/godbus/dbus. The references are
// org.freedesktop.login1(5) and the D-Bus Specification.
package login1
