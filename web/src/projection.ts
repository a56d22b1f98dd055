// From the numbers of a feed to the square of the web's maps and back. Positions on the square are 0..1, y downward.
// Degrees go there by Mercator's formula; a plane is laid flat into the middle, so that a map of the world draws it.

export interface Projection {
  toSquare(x: number, y: number): [number, number];
  fromSquare(u: number, v: number): [number, number];
}

const POLE_LAT = 85.0511287798;

export const DEGREES: Projection = {
  toSquare(lon, lat) {
    const sine = Math.sin((Math.max(-POLE_LAT, Math.min(POLE_LAT, lat)) * Math.PI) / 180);
    return [(lon + 180) / 360, 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)];
  },
  fromSquare(u, v) {
    return [u * 360 - 180, (Math.atan(Math.sinh(Math.PI * (1 - 2 * v))) * 180) / Math.PI];
  },
};

const PLANE_SHARE = 0.02; // of the square: room to pan, and twenty levels of zoom

export interface Extent {
  left: number;
  right: number;
  low: number;
  high: number;
}

export function planeProjection(extent: Extent): Projection {
  const size = Math.max(extent.right - extent.left, extent.high - extent.low) || 1;
  const scale = PLANE_SHARE / size;
  const [x0, y0] = [(extent.left + extent.right) / 2, (extent.low + extent.high) / 2];
  return {
    toSquare: (x, y) => [0.5 + (x - x0) * scale, 0.5 - (y - y0) * scale],
    fromSquare: (u, v) => [x0 + (u - 0.5) / scale, y0 + (0.5 - v) / scale],
  };
}

export function toLngLat(projection: Projection, x: number, y: number): [number, number] {
  return DEGREES.fromSquare(...projection.toSquare(x, y));
}

/** Returns how far a number from a click is worth writing down: a pixel's width, to one more digit. */
export function roundTo(value: number, pixel: number): number {
  const digits = Math.max(0, Math.min(12, 1 - Math.floor(Math.log10(Math.abs(pixel) || 1))));
  return Number(value.toFixed(digits));
}
