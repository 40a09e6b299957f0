"""Two SSDs with different over-provisioning, and a flash translation layer in Python."""

import hybridsim
from hybridsim import ComponentSpec, Host, Policy, Scenario, Workload

scenario = Scenario(
    title="7 % over-provisioning",
    host=Host(mode="closed", queue_depth=8),
    workload=Workload(generator=Policy("uniform", requests=50_000, read=0.3)),
    components={
        "ssd": ComponentSpec(
            "ssd",
            channels=2,
            dies_per_channel=2,
            planes_per_die=1,
            blocks_per_plane=256,
            pages_per_block=16,
            read_time="25us",
            program_time="200us",
            erase_time="1.5ms",
            precondition="fill",
        )
    },
)

for share in (0.07, 0.28):
    overrides = {"title": f"{share:.0%} spare", "component.ssd.over_provisioning": share}
    result = hybridsim.run(scenario, overrides=overrides)
    print(
        f"{result.title}: write amplification {result.totals.write_amplification:.2f}, "
        f"p99 of reads {result.latency_ns.read.p99 / 1e3:.0f} us"
    )


@hybridsim.ftl("write-once")
class WriteOnce(hybridsim.Ftl):
    """A minimal FTL: a log without garbage collection."""

    def __init__(self, device):
        super().__init__(device)
        self.map = {}
        self.next = 0

    def read(self, lpn, flash):
        if lpn in self.map:
            flash.host_read(self.map[lpn])

    def write(self, lpn, flash):
        if self.next == self.device.pages:
            raise hybridsim.DeviceFull("the log is full")
        flash.host_program(self.next, lpn)
        self.trim(lpn, flash)
        self.map[lpn] = self.next
        self.next += 1

    def trim(self, lpn, flash):
        if lpn in self.map:
            flash.invalidate(self.map.pop(lpn))

    def holds(self, lpn):
        return lpn in self.map


try:
    log = {"component.ssd.ftl": "write-once", "component.ssd.precondition": "none"}
    hybridsim.run(scenario, overrides=log)
except hybridsim.RunError as error:
    done = error.result.latency_ns.write.count
    print(f"a log without garbage collection took {done} writes: {error}")
