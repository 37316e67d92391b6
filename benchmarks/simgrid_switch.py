"""How long does SimGrid take for flows under one ideal switch? For an interpreter that has Debian's python3-simgrid.

Arguments: endpoints, "uniform" or "uneven". Prints one JSON line: seconds of CPU time, and the last end.
"""

import json
import sys
import time

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone


def send_all(n: int, uneven: bool) -> None:
    hosts = [Engine.instance.host_by_name(f"h{i}") for i in range(n)]
    comms = []
    for i in range(n):
        for j in range(n):
            if i != j:
                n_bytes = (1 + (7919 * i + 104729 * j) % 97) * 10**8 if uneven else 10**9
                comms.append(Comm.sendto_async(hosts[i], hosts[j], n_bytes))
    for comm in comms:
        comm.wait()


def main() -> None:
    n, kind = int(sys.argv[1]), sys.argv[2]
    plain = ["network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/weight-S:0"]
    engine = Engine([sys.argv[0], *(f"--cfg={setting}" for setting in plain), "--log=root.thres:critical"])
    zone = NetZone.create_full_zone("zone")
    hosts = [zone.create_host(f"h{i}", 1e9) for i in range(n)]
    up, down = (
        [zone.create_link(f"{way}{i}", 900e9).set_latency(0).seal() for i in range(n)] for way in ("up", "down")
    )
    for i in range(n):
        for j in range(n):
            if i != j:
                links = [LinkInRoute(up[i]), LinkInRoute(down[j])]
                zone.add_route(hosts[i].netpoint, hosts[j].netpoint, None, None, links, False)
    zone.seal()
    Actor.create("all", engine.host_by_name("h0"), send_all, n, kind == "uneven")
    begin = time.process_time()
    engine.run()
    print(json.dumps({"seconds": time.process_time() - begin, "end": engine.clock}))


if __name__ == "__main__":
    main()
