# Process 1 of a machine, until it executes systemd: boot.sh DISK CGROUP BOOT-ID. It
# waits for the end of its input, because the network must exist first.
cat >/dev/null
disk=$1 cgroup=$2 boot=$3
if [ -n "$cgroup" ]; then
	mount --make-rprivate /
	echo 0 >"$cgroup/cgroup.procs"
	# The cgroup becomes the root of the machine's hierarchy.
	exec unshare --cgroup /bin/sh -e "$0" "$disk" "" "$boot"
fi
mount --bind "$disk" "$disk"
mount --bind /usr "$disk/usr"
mount -o remount,bind,ro "$disk/usr"
mount --bind "$disk/local" "$disk/usr/local"
mount -t proc proc "$disk/proc"
# A read-only /sys tells systemd-networkd that there is no udev
# (https://systemd.io/CONTAINER_INTERFACE/).
mount -t sysfs -o ro sysfs "$disk/sys"
mount -t cgroup2 cgroup2 "$disk/sys/fs/cgroup"
for dir in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$disk/$dir"; done
for device in null zero full random urandom tty; do
	: >"$disk/dev/$device"
	mount --bind "/dev/$device" "$disk/dev/$device"
done
echo "$boot" >"$disk/run/boot_id"
mount --bind "$disk/run/boot_id" "$disk/proc/sys/kernel/random/boot_id"
cd "$disk"
pivot_root . mnt
umount -l /mnt
exec env -i container=lifeboat PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/lib/systemd/systemd
