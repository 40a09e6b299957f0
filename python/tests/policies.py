"""Policies used by the tests: sound ones, and ones with a mistake each."""

from __future__ import annotations

from collections import deque

import hybridsim


class PageFtl(hybridsim.Ftl):
    """Maps every page freely into one log; collects the block with the fewest valid pages."""

    def __init__(self, device):
        super().__init__(device)
        # One block stays free to move pages into, and moving must gain something.
        if device.exported_pages >= (device.blocks - 1) * device.pages_per_block:
            raise ValueError("too little spare space: raise over_provisioning")
        self.map = [None] * device.exported_pages
        self.free = deque(range(device.blocks))
        self.retired = set()
        self.block = self.free.popleft()
        self.offset = 0

    def read(self, lpn, flash):
        if self.map[lpn] is not None:
            flash.host_read(self.map[lpn])

    def write(self, lpn, flash):
        page = self.take(flash)
        flash.host_program(page, lpn)
        # Only now: making room may have moved the old copy.
        old, self.map[lpn] = self.map[lpn], page
        if old is not None:
            flash.invalidate(old)

    def trim(self, lpn, flash):
        if self.map[lpn] is not None:
            flash.invalidate(self.map[lpn])
            self.map[lpn] = None

    def holds(self, lpn):
        return self.map[lpn] is not None

    def take(self, flash):
        while self.offset == self.device.pages_per_block:
            if len(self.free) > 1:
                self.block, self.offset = self.free.popleft(), 0
            else:
                self.collect(flash)
        self.offset += 1
        return self.device.page(self.block, self.offset - 1)

    def collect(self, flash):
        used = set(range(self.device.blocks)) - set(self.free) - self.retired
        victim = min(sorted(used), key=flash.valid_pages)
        if not self.free or flash.valid_pages(victim) == self.device.pages_per_block:
            raise hybridsim.DeviceWornOut(f"{len(self.retired)} blocks are worn out")
        self.block, self.offset = self.free.popleft(), 0
        for page in flash.valid_in(victim):
            self.move(page, flash)
        if flash.erase(victim):
            self.free.append(victim)
        else:
            self.retired.add(victim)

    def move(self, page, flash):
        target = self.device.page(self.block, self.offset)
        self.offset += 1
        owner = flash.owner(page)
        flash.copy(page, target)
        self.map[owner] = target


class ForgetfulFtl(PageFtl):
    """Does not note where garbage collection moved pages to."""

    def move(self, page, flash):
        old = self.map[flash.owner(page)]
        super().move(page, flash)
        self.map[flash.owner(self.device.page(self.block, self.offset - 1))] = old


class WrongPageFtl(PageFtl):
    """Reads its neighbour's page."""

    def read(self, lpn, flash):
        super().read(lpn ^ 1 if lpn ^ 1 < len(self.map) and self.holds(lpn ^ 1) else lpn, flash)


class RaisingFtl(PageFtl):
    """Raises an exception at a certain write or read."""

    def __init__(self, device, *, method="write", after=100):
        super().__init__(device)
        self.method = method
        self.after = after
        self.calls = 0

    def count(self, method):
        if method == self.method:
            self.calls += 1
            if self.calls > self.after:
                raise RuntimeError(f"a mistake in {method}")

    def read(self, lpn, flash):
        self.count("read")
        super().read(lpn, flash)

    def write(self, lpn, flash):
        self.count("write")
        super().write(lpn, flash)

    def holds(self, lpn):
        self.count("holds")
        return super().holds(lpn)


class PythonLru(hybridsim.Replacement):
    """Least recently used."""

    def __init__(self, pages):
        super().__init__(pages)
        self.order = {}

    def update(self, page, access):
        self.order.pop(page, None)
        self.order[page] = access

    def remove(self, page):
        self.order.pop(page, None)

    def victims(self):
        return iter(self.order)


class InventingLru(PythonLru):
    """Names pages that are not in the cache."""

    def victims(self):
        return [2**40]


class StubbornLru(PythonLru):
    """Returns no victims."""

    def victims(self):
        return []


class RaisingLru(PythonLru):
    """Raises an exception at the tenth update."""

    def update(self, page, access):
        super().update(page, access)
        if len(self.order) >= 10:
            raise KeyError("a mistake")
