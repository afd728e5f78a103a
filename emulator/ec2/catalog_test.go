package ec2

import (
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	types := Types()
	seen, arm := map[string]bool{}, 0
	for i, in := range types {
		if seen[in.Name] {
			t.Errorf("%s is there twice", in.Name)
		}
		seen[in.Name] = true
		price, ok := OnDemandPrice(in.Name)
		switch {
		case !ok || price <= 0:
			t.Errorf("%s has no price", in.Name)
		case in.VCPU < 1 || in.MemoryMiB < 2048 || in.EBSMbps == 0 || in.ClockGHz == 0 || in.Manufacturer == "":
			t.Errorf("%s lacks something: %+v", in.Name, in)
		case i > 0 && familyName(types[i-1].Name) == familyName(in.Name) && in.MemoryMiB <= types[i-1].MemoryMiB:
			t.Errorf("%s is no larger than %s", in.Name, types[i-1].Name)
		}
		if in.Architecture == ARM {
			arm++
		}
	}
	if len(types)-arm < 60 || arm == 0 {
		t.Errorf("%d types, of which %d for ARM", len(types), arm)
	}
}

// The values come from Amazon's own tables.
func TestCatalogueAgreesWithAmazon(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		vcpu, memory, pods int
		arch, maker        string
		price              float64
	}{
		"c5.large":    {2, 4096, 29, X86, "Intel", 0.085},
		"c6a.xlarge":  {4, 8192, 58, X86, "AMD", 0.153},
		"c7i.8xlarge": {32, 65536, 234, X86, "Intel", 1.428},
		"m5.2xlarge":  {8, 32768, 58, X86, "Intel", 0.384},
		"m6g.4xlarge": {16, 65536, 234, ARM, "AWS", 0.616},
		"m7a.large":   {2, 8192, 29, X86, "AMD", 0.11592},
		"r6i.xlarge":  {4, 32768, 58, X86, "Intel", 0.252},
		"t3.small":    {2, 2048, 11, X86, "Intel", 0.0208},
		"t3a.small":   {2, 2048, 8, X86, "AMD", 0.0188},
		"t4g.medium":  {2, 4096, 17, ARM, "AWS", 0.0336},
		"t3.2xlarge":  {8, 32768, 58, X86, "Intel", 0.3328},
	} {
		in, ok := FindType(name)
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		price, _ := OnDemandPrice(name)
		same(t, name, []any{in.VCPU, in.MemoryMiB, in.MaxPods(), in.Architecture, in.Manufacturer, price},
			[]any{want.vcpu, want.memory, want.pods, want.arch, want.maker, want.price})
	}
	if _, ok := FindType("m9.huge"); ok {
		t.Error("m9.huge exists")
	}
	if _, ok := OnDemandPrice("m9.huge"); ok {
		t.Error("m9.huge has a price")
	}
}

func TestImagesServeBothArchitectures(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{X86, ARM} {
		m, ok := findImage(ImageID(arch))
		if !ok || m.Architecture != arch || !strings.Contains(m.Name, arch) {
			t.Errorf("the image for %s is %+v", arch, m)
		}
	}
	same(t, "no such architecture", ImageID("i386"), "")
	wantCode(t, checkFit(ImageID(ARM), "m5.large"), "InvalidParameterValue")
	for _, err := range []error{checkFit(ImageID(ARM), "m6g.large"), checkFit("ami-mine", "m6g.large"), checkFit(ImageID(X86), "none")} {
		if err != nil {
			t.Error(err)
		}
	}
}
