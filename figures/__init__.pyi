from ._bars import draw_bounds as draw_bounds
from ._curves import draw_step_time as draw_step_time
from ._curves import draw_width_curve as draw_width_curve
from ._failures import draw_failures as draw_failures
from ._save import save as save
from ._topology import draw_topology as draw_topology
from ._waterfall import draw_step as draw_step
